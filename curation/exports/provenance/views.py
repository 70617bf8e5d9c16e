from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.exports.access import opened_page
from curation.exports.provenance.trace import MOST_ROWS, exported_rows, first_rows, project_calls, rows_of, trace
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.models import Call
from curation.runs.pages.filters import CALL_TABS, ProjectCallList
from curation.samples.blind import has_hidden, refuse_pending, refuse_undecided
from curation.samples.models import Sample
from curation.web.ids import find, id_number
from curation.web.lists.pages import list_context, tabs

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
