"""The line of kings: its REST calls and its page."""

from datetime import datetime
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from curation.duels.reigns.context import ChallengeOut, reign_views
from curation.duels.reigns.crown import crown, end_reign
from curation.duels.reigns.models import Reign
from curation.projects.access import Access, enter, principal_of, project_page
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.web.forms import ProblemForm
from curation.web.ids import find, find_param
from curation.web.lists.filters import ListParams, named_list
from curation.web.lists.pages import list_context
from curation.web.schemas import Id, Out, Page, StrictModel, Username

router = Router(tags=["duels"])


named_list("reigns", page="reign-list")(ListParams)


class CrownIn(StrictModel):
    """`challenger` is its model or the beginning of its fingerprint, where the run accepted several."""

    run: str = Field(examples=["12"])
    challenger: str = Field("", examples=[""])


class EndReignIn(StrictModel):
    reason: str = Field(examples=["The endpoint answers with another model since Monday."])


class VersionOut(Schema):
    """SHA-256 of the instructions, and the fingerprint over stage, model, instructions and parameters."""

    instructions: str
    fingerprint: str


class ReignOut(Out):
    """A crowned contestant. `challenger` is the version whose answers won, `king` the one that answers blind."""

    id: Id = Field(examples=["3"])
    model: str = Field(examples=["model-b"], description="The endpoint's name.")
    target: dict[str, Any] = Field(
        examples=[{"model": "openai/model-b", "api_base": "", "params": {"temperature": 0.7, "max_tokens": 2048}}],
        description="What the endpoint was when it was crowned.",
    )
    challenger: VersionOut
    king: VersionOut
    run: Id | None = Field(validation_alias="run_id", examples=["12"])
    margin: float = Field(examples=[14.2], description="Points over the opponent in the run of its crowning.")
    lcb: float = Field(examples=[8.1], description="Points.")
    panels: list[str] = Field(examples=[["3f9a1c0b77de"]])
    crowned_by: Username | None = Field(examples=["ada"], description="Null: by the project's setting.")
    crowned_at: datetime
    ended_at: datetime | None = Field(description="Null: it reigns.")
    ended_by: Username | None
    end_reason: str = Field(examples=[""], description="Empty: the next king followed.")
    notes: list[str] = Field(
        [], description="What has changed since: a deleted endpoint, another version, a new verdict."
    )
    challenges: list[ChallengeOut] = []

    @staticmethod
    def resolve_challenger(row: Reign) -> VersionOut:
        return VersionOut(instructions=row.instructions_hash, fingerprint=row.fingerprint)

    @staticmethod
    def resolve_king(row: Reign) -> VersionOut:
        return VersionOut(instructions=row.king_instructions_hash, fingerprint=row.king_fingerprint)

    @staticmethod
    def of(view: dict[str, Any]) -> "ReignOut":
        beside = {"notes": view["notes"], "challenges": view["challenges"]}
        return ReignOut.model_validate(view["row"]).model_copy(update=beside)


def _rows(project: Project) -> QuerySet[Reign]:
    return Reign.objects.filter(project=project).select_related("run", "crowned_by", "ended_by")


@router.get("/projects/{slug}/reigns", response=Page[ReignOut], summary="The line of kings")
def list_reigns(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    """Each with the runs against it: a defence is a run against the version that was crowned."""
    project = enter(request, slug, Scope.READ).project
    page = params.page(_rows(project))
    views = {view["row"].pk: view for view in reign_views(project, page.rows)}
    return page.response(lambda row: ReignOut.of(views[row.pk]))


@router.post("/projects/{slug}/reigns", response={201: ReignOut}, summary="Crown the accepted challenger of a run")
def post_reign(request: HttpRequest, slug: str, body: CrownIn) -> Status[ReignOut]:
    """409 with the reason where the run's verdict does not allow it."""
    access = enter(request, slug, Scope.RUN)
    run = find_param(Run.objects.of(access.project).select_related("project"), body.run, "run", "run")
    reign = crown(access=access, run=run, challenger=body.challenger)
    return Status(201, ReignOut.of(reign_views(access.project, [reign])[0]))


@router.post("/reigns/{reign_id}/end", response=ReignOut, summary="End a reign without a successor (admins)")
def post_end(request: HttpRequest, reign_id: str, body: EndReignIn) -> ReignOut:
    """The next duel run takes its king from the settings again, until a challenger is crowned."""
    visible = Project.objects.visible_to(principal_of(request).user)
    rows = Reign.objects.filter(project__in=visible).select_related("project", "run", "crowned_by")
    reign = find(rows, reign_id, "reign")
    access = enter(request, reign.project, Scope.ADMIN)
    return ReignOut.of(reign_views(access.project, [end_reign(access=access, reign=reign, reason=body.reason)])[0])


class EndForm(ProblemForm):
    reason = forms.CharField(error_messages={"required": "Say why the reign ends."})


@project_page(Scope.READ, "GET")
def reign_list(request: HttpRequest, access: Access) -> HttpResponse:
    return _page(request, access)


def _page(request: HttpRequest, access: Access, *, ending: tuple[Reign, ProblemForm] | None = None) -> HttpResponse:
    """`ending` is a reign that was not ended, and the form that says why."""
    reign, form = ending or (None, None)
    params = ListParams.from_query(request.GET)
    page = params.page(_rows(access.project))
    context = {
        **list_context(
            request,
            params,
            page,
            f"/api/v1/projects/{access.project.slug}/reigns",
            path=reverse("reign-list", args=[access.project.slug]),
        ),
        "reigns": reign_views(access.project, page.rows),
        "may_end": access.may(Scope.ADMIN),
        "ending": reign,
        "form": form,
    }
    return render(request, "duels/reigns/list.html", context, status=form.status if form else 200)


@project_page(Scope.RUN, "POST")
def reign_crown(request: HttpRequest, access: Access) -> HttpResponse:
    run = find(Run.objects.of(access.project).select_related("project"), request.POST.get("run", ""), "run")
    crown(access=access, run=run, challenger=request.POST.get("challenger", ""))
    return HttpResponseRedirect(reverse("reign-list", args=[access.project.slug]))


@project_page(Scope.ADMIN, "POST")
def reign_end(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    reign = find(Reign.objects.filter(project=access.project), pk, "reign")
    form = EndForm(request.POST)
    if form.is_valid():
        with form.shows_problem():
            end_reign(access=access, reign=reign, reason=form.cleaned_data["reason"])
            return HttpResponseRedirect(reverse("reign-list", args=[access.project.slug]))
    return _page(request, access, ending=(reign, form))
