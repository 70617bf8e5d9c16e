from itertools import islice
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from ninja import Query, Router, Schema
from pydantic import Field

from curation.exports.access import opened, opened_page
from curation.exports.provenance.trace import MOST_ROWS, Trace, exported_rows, first_rows, project_calls, rows_of, trace
from curation.projects.access import Access, enter, principal_of, project_page
from curation.projects.models import Project, Scope
from curation.runs.models import Call
from curation.runs.pages.api import CallOut
from curation.runs.pages.filters import CALL_TABS, ProjectCallList
from curation.samples.blind import has_hidden, refuse_pending, refuse_undecided
from curation.samples.models import Sample
from curation.web.ids import find, id_number
from curation.web.lists.pages import list_context, tabs
from curation.web.schemas import Id, Money, Out, Page, Set, Username, answer

_PAGES = {"answer": "", "revision": "", "verdict": "", "trajectory": "trajectory-page", "scenario": "scenario-page"}


@project_page(Scope.READ, "GET")
def export_rows(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The first rows. `q` finds the rows of a sample by its number, or opens a row by its SHA-256."""
    export = opened_page(access, pk)
    wanted = request.GET.get("q", "").strip().lower()
    sample = id_number(wanted)
    path = f"/api/v1/exports/{export.pk}/rows"
    if len(wanted) == 64:
        return redirect("export-row", access.project.slug, export.pk, wanted)
    if sample is not None:
        lines, path = list(rows_of(export, [sample])), f"{path}?sample={sample}"
    else:
        lines = [] if wanted else first_rows(export)
    context = {"export": export, "lines": lines, "wanted": wanted, "most": MOST_ROWS, "api_path": path}
    return render(request, "exports/provenance/rows.html", context)


@project_page(Scope.READ, "GET")
def export_row(request: HttpRequest, access: Access, pk: str, sha256: str) -> HttpResponse:
    export = opened_page(access, pk)
    found = trace(export=export, sha256=sha256)
    steps = [
        (step, reverse(_PAGES[step.kind], args=[access.project.slug, step.id]) if _PAGES[step.kind] else "")
        for step in found.steps
    ]
    context = {"found": found, "steps": steps, "api_path": f"/api/v1/exports/{export.pk}/rows/{sha256}"}
    return render(request, "exports/provenance/row.html", context)


@project_page(Scope.READ, "GET", closed_to=has_hidden)
def call_list(request: HttpRequest, access: Access) -> HttpResponse:
    refuse_undecided(access)
    params = ProjectCallList.from_query(request.GET)
    page = params.read(project_calls(access))
    context = {
        **list_context(request, params, page, f"/api/v1/projects/{access.project.slug}/calls"),
        "tabs": tabs(request.path, params, "status", CALL_TABS),
    }
    return render(request, "runs/calls.html", context)


@project_page(Scope.READ, "GET")
def call_exports(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    call = find(Call.objects.filter(project=access.project).select_related("run", "item"), pk, "call")
    found = list(exported_rows(call))
    samples = Sample.objects.filter(pk__in=[line.sample["sample"] for _, lines in found for line in lines])
    refuse_pending(access, samples, f"call {call.pk}")
    context = {"call": call, "found": found, "api_path": f"/api/v1/calls/{call.pk}/exports"}
    return render(request, "exports/provenance/call.html", context)


router = Router(tags=["exports"])
Json = dict[str, object]
_SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


class ExportedRowOut(Out):
    """A row of an export, by the SHA-256 of its line."""

    sha256: str = Field(validation_alias="row.sha256", examples=[_SHA])
    format: str = Field(validation_alias="row.format", examples=["dpo"])
    split: str = Field(validation_alias="row.split", examples=["train"])
    source: str = Field(validation_alias="row.source", examples=["duels"])
    pair: str | None = Field(
        None, validation_alias="row.pair", description="The pair of trajectories that the row comes from."
    )
    sample: str = Field(validation_alias="sample.sample", examples=["17"])
    version: int = Field(validation_alias="sample.version", examples=[2])
    revision: str | None = Field(
        validation_alias="sample.revision",
        examples=["4"],
        description="The approved revision; null for the answer as recorded.",
    )


class TracedDecisionOut(Out):
    id: Id
    action: str = Field(examples=["approve"])
    reviewer: Username | None = Field(examples=["demo"])
    guarantee: Id | None = Field(
        validation_alias="guarantee_id",
        examples=[None],
        description="It approved unseen, started by `reviewer`.",
    )
    undone: Set = Field(validation_alias="undone_by_id")


class StepOut(Out):
    """`calls` are all attempts; none where it was imported or written by a person."""

    kind: str = Field(examples=["verdict"], description="answer, revision, verdict, trajectory or scenario")
    id: str = Field(examples=["88"])
    title: str = Field(examples=["Verdict by judge-a, king first"])
    calls: list[CallOut]


class TraceOut(ExportedRowOut):
    """Every call that made the row. `cost` is of the calls whose price is known, in US dollars."""

    export: Id = Field(examples=["12"])
    decisions: list[TracedDecisionOut]
    steps: list[StepOut]
    cost: Money = Field(examples=["0.0123"])
    cost_unknown_calls: int = Field(validation_alias="unknown", examples=[0])


class CallExportOut(Schema):
    export: Id = Field(examples=["12"])
    rows: list[ExportedRowOut]


@router.get(
    "/exports/{export_id}/rows",
    response=answer("ExportedRowList", data=list[ExportedRowOut]),
    summary="The first rows of an export",
)
def list_export_rows(
    request: HttpRequest, export_id: str, limit: Annotated[int, Field(ge=1, le=500)] = 50, sample: int | None = None
) -> Json:
    """With `sample`, the rows of this sample."""
    _, export = opened(request, export_id)
    found = first_rows(export, limit=limit) if sample is None else islice(rows_of(export, [sample]), limit)
    return {"data": list(found)}


@router.get("/exports/{export_id}/rows/{sha256}", response=TraceOut, summary="Every call behind one row")
def get_row(request: HttpRequest, export_id: str, sha256: str) -> Trace:
    """`sha256` is that of the row's line in its file, with the newline; `frozen.jsonl` lists them."""
    return trace(export=opened(request, export_id)[1], sha256=sha256)


@router.get("/projects/{slug}/calls", response=Page[CallOut], tags=["runs"], summary="Every model call of a project")
def list_project_calls(request: HttpRequest, slug: str, params: Query[ProjectCallList]) -> Json:
    """Of all runs, the newest first. Refused to those who review blind while a sample of the project is pending: the
    tokens of an answer tell which one it is."""
    calls = project_calls(enter(request, slug, Scope.READ))
    return params.read(calls).response()


@router.get(
    "/calls/{call_id}/exports",
    response=answer("CallExportList", data=list[CallExportOut]),
    summary="The exports that a call reached",
)
def list_call_exports(request: HttpRequest, call_id: str) -> Json:
    visible = Project.objects.visible_to(principal_of(request).user)
    call = find(Call.objects.filter(project__in=visible).select_related("project", "item"), call_id, "call")
    access = enter(request, call.project, Scope.READ)
    found = list(exported_rows(call))
    samples = Sample.objects.filter(pk__in=[line.sample["sample"] for _, lines in found for line in lines])
    refuse_pending(access, samples, f"call {call.pk}")
    return {"data": [{"export": export, "rows": rows} for export, rows in found]}
