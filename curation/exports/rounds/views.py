"""The page of rounds and their REST calls. Starting one needs the scopes `run` and `export`."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from ninja import Query, Router, Status
from pydantic import Field

from curation.exports.models import Round
from curation.exports.rounds.figures import RoundOut, figures_of, rounds_shown
from curation.exports.rounds.start import export_round, start_next, start_round
from curation.llm.models import Endpoint
from curation.projects.access import Access, enter, principal_of, project_page
from curation.projects.models import Project, Scope
from curation.runs.pages.schemas import RunOut, accepted_run
from curation.samples.blind import refuse_pending, reviews_blind
from curation.samples.models import Sample
from curation.web.forms import ProblemForm, tells_refusal
from curation.web.ids import find
from curation.web.lists.filters import ListParams
from curation.web.problems import FieldError, Invalid
from curation.web.schemas import Page, StrictModel

MOST_CHAINS = 20


class RoundForm(ProblemForm):
    """The first round of a chain, or with `before` the next one."""

    path_prefix = "params."

    before = forms.CharField(required=False, widget=forms.HiddenInput)
    operator = forms.ChoiceField(label="Operator")
    samples = forms.IntegerField(required=False, min_value=1, max_value=64, initial=3, label="Rollouts per scenario")

    def __init__(self, project: Project, data: QueryDict | None = None) -> None:
        super().__init__(data)
        names = Endpoint.objects.of(project).values_list("name", flat=True)
        self.operators = [(name, name) for name in names]
        self.fields["operator"] = forms.ChoiceField(label="Operator", choices=self.operators)


@project_page(Scope.READ, "GET")
def round_list(request: HttpRequest, access: Access) -> HttpResponse:
    """The rounds of one chain, by default the newest one."""
    return _page(request, access, RoundForm(access.project))


def _page(request: HttpRequest, access: Access, form: RoundForm) -> HttpResponse:
    rows = rounds_shown(access, Round.objects.of(access.project))
    chains = list(rows.filter(number=1).order_by("-id")[:MOST_CHAINS])
    newest = rows.order_by("-id").first()
    chosen = find(rows, request.GET["round"], "round") if request.GET.get("round") else newest
    found = figures_of(rows.chain_of(chosen)) if chosen else []
    context = {
        "chains": chains,
        "rounds": found,
        "leaves_out_pending": reviews_blind(access),
        "last": found[-1] if found else None,
        "axes": _axis_lines(found),
        "operators": [name for name, _ in form.operators],
        "form": form,
        "may_start": access.may(Scope.RUN) and access.may(Scope.EXPORT),
        "api_path": f"/api/v1/projects/{access.project.slug}/rounds",
    }
    return render(request, "exports/rounds/list.html", context, status=form.status)


@project_page(Scope.RUN, "POST")
def round_start(request: HttpRequest, access: Access) -> HttpResponse:
    """The first round of a chain, or with `before` the next one."""
    form = RoundForm(access.project, request.POST)
    if form.is_valid():
        given = form.cleaned_data
        with form.shows_problem():
            if given["before"]:
                before = find(Round.objects.of(access.project), given["before"], "round")
                start_next(access=access, before=before, operator=given["operator"])
            else:
                rollout = {} if given["samples"] is None else {"samples": given["samples"]}
                start_round(access=access, operator=given["operator"], rollout=rollout)
            return redirect("round-list", access.project.slug)
    return _page(request, access, form)


@project_page(Scope.EXPORT, "POST")
def round_export(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    row = find(Round.objects.of(access.project), str(pk), "round")
    with tells_refusal(request):
        run = export_round(access=access, round_=row, without_pending="without_pending" in request.POST)
        return redirect("run-page", access.project.slug, run.pk)
    return redirect("round-list", access.project.slug)


def _axis_lines(rounds: list[RoundOut]) -> list[tuple[str, str, list[str]]]:
    """Return each axis and value with its rate in every round; tasks come first."""
    rates = [{(one.axis, one.value): one.says for one in found.by_axis} for found in rounds]
    keys = sorted({key for of_round in rates for key in of_round}, key=lambda key: (key[0] != "task", *key))
    return [(axis, value, [of_round.get((axis, value), "–") for of_round in rates]) for axis, value in keys]


class RoundIn(StrictModel):
    """The first round of a chain, or with `before` the next round of its chain."""

    operator: str = Field(max_length=60, examples=["student-1"], description="Name of the endpoint.")
    before: str | None = Field(None, examples=["3"], description="Id of the round on whose export it was trained.")
    rollout: dict[str, Any] = Field(
        {}, examples=[{"samples": 3, "max_turns": 30}], description="Parameters of the rollout; not with `before`."
    )
    formats: list[str] = Field(["sft-messages"], description="Formats of the export; not with `before`.")


class RoundExportIn(StrictModel):
    without_pending: bool = Field(False, examples=[True], description="Export now, without the undecided trajectories.")


router = Router(tags=["rounds"])
Json = dict[str, object]


def _entered(request: HttpRequest, round_id: str, scope: str = Scope.READ) -> tuple[Access, Round]:
    row = find(Round.objects.visible_to(principal_of(request).user), round_id, "round")
    access = enter(request, row.project, scope)
    refuse_pending(access, Sample.objects.filter(trajectory__run=row.rollout_id), f"round {row.pk}")
    return access, row


def _figures(access: Access, row: Round) -> RoundOut:
    chain = figures_of(Round.objects.of(access.project).chain_of(row))
    return next(found for found in chain if found.id == str(row.pk))


@router.get("/projects/{slug}/rounds", response=Page[RoundOut], exclude_unset=True, summary="List rounds")
def list_rounds(request: HttpRequest, slug: str, params: Query[ListParams]) -> Json:
    """Blind reviewers get the rounds without pending samples."""
    access = enter(request, slug, Scope.READ)
    page = params.page(rounds_shown(access, Round.objects.of(access.project)))
    return page.response(lambda row: _figures(access, row))


@router.post("/projects/{slug}/rounds", response={202: RoundOut}, summary="Start a round")
def create_round(request: HttpRequest, response: HttpResponse, slug: str, body: RoundIn) -> Status[RoundOut]:
    """Launch a rollout. Once people have decided its kept trajectories, the approved ones are exported."""
    access = enter(request, slug, Scope.RUN)
    if body.before is None:
        row = start_round(access=access, operator=body.operator, rollout=body.rollout, formats=body.formats)
    else:
        if {"rollout", "formats"} & body.model_fields_set:
            raise Invalid.fields([FieldError("before", "the next round has the parameters of the one before")])
        before = find(Round.objects.of(access.project), body.before, "round")
        row = start_next(access=access, before=before, operator=body.operator)
    response["Location"] = f"/api/v1/rounds/{row.pk}"
    return Status(202, _figures(access, row))


@router.get("/rounds/{round_id}", response=RoundOut, summary="One round with its figures")
def get_round(request: HttpRequest, round_id: str) -> RoundOut:
    return _figures(*_entered(request, round_id))


@router.post("/rounds/{round_id}/export", response={202: RunOut}, summary="Export the approved trajectories of a round")
def create_round_export(
    request: HttpRequest, response: HttpResponse, round_id: str, body: RoundExportIn | None = None
) -> Status[Json]:
    """409 `not_ready` names the missing step. A reviewed round is exported by itself within a minute."""
    access, row = _entered(request, round_id, Scope.EXPORT)
    run = export_round(access=access, round_=row, without_pending=bool(body and body.without_pending))
    return accepted_run(response, run)
