"""REST calls of rounds. Starting one needs the scopes `run` and `export`."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from curation.exports.models import Round
from curation.exports.rounds.figures import RoundFigures, figures_of, rounds_shown
from curation.exports.rounds.start import export_round, start_next, start_round
from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Scope
from curation.runs.pages.schemas import RunOut, run_out
from curation.samples.blind import refuse_pending
from curation.samples.models import Sample
from curation.scenarios.pages.measured import MeasuredOut
from curation.web.ids import find
from curation.web.lists.filters import ListParams
from curation.web.problems import FieldError, Invalid
from curation.web.schemas import Id, Out, Page, Strict


class RoundIn(Strict):
    """The first round of a chain, or with `before` the next round of its chain."""

    operator: str = Field(max_length=60, examples=["student-1"], description="Name of the endpoint.")
    before: str | None = Field(None, examples=["3"], description="Id of the round on whose export it was trained.")
    rollout: dict[str, Any] = Field(
        {}, examples=[{"samples": 3, "max_turns": 30}], description="Parameters of the rollout; not with `before`."
    )
    formats: list[str] = Field(["sft-messages"], description="Formats of the export; not with `before`.")


class RoundExportIn(Strict):
    without_pending: bool = Field(False, examples=[True], description="Export now, without the undecided trajectories.")


class AxisRateOut(MeasuredOut):
    axis: str = Field(examples=["task"])
    value: str = Field(examples=["cleanup"])


class RoundOut(Out):
    id: Id = Field(validation_alias="round.id")
    chain: Id = Field(validation_alias="round.chain", description="Id of the first round; the next ones have the same.")
    number: int = Field(validation_alias="round.number", examples=[1])
    operator: str = Field(validation_alias="round.operator")
    run: Id = Field(validation_alias="round.rollout_id", description="The rollout.")
    export: Id | None = Field(validation_alias="round.export_id")
    state: str = Field(
        validation_alias="progress.state",
        examples=["review"],
        description="rollout, review, nothing, ready, export, done or failed",
    )
    says: str = Field(
        validation_alias="progress.says", examples=["Waiting for review: 3 of 8 kept trajectories are undecided."]
    )
    kept: int = Field(validation_alias="progress.kept", description="Trajectories.")
    approved: int = Field(validation_alias="progress.approved")
    pending: int = Field(validation_alias="progress.pending")
    rate: MeasuredOut = Field(description="The kept rate.")
    by_axis: list[AxisRateOut]
    scenarios_solved: int = Field(validation_alias="solved")
    new_scenarios_solved: int = Field(
        validation_alias="new", description="Those that no earlier round of the chain solved."
    )
    rows: int = Field(description="Rows in the files of its export.")
    created_at: datetime = Field(validation_alias="round.created_at")

    @staticmethod
    def resolve_by_axis(found: RoundFigures) -> list[AxisRateOut]:
        rates = sorted(found.by_axis.items())
        return [AxisRateOut(axis=axis, value=value, **rate.model_dump()) for (axis, value), rate in rates]


router = Router(tags=["rounds"])
Json = dict[str, object]


def _entered(request: HttpRequest, round_id: str, scope: str = Scope.READ) -> tuple[Access, Round]:
    row = find(Round.objects.visible_to(principal_of(request).user), round_id, "round")
    access = enter(request, row.project, scope)
    refuse_pending(access, Sample.objects.filter(trajectory__run=row.rollout_id), f"round {row.pk}")
    return access, row


def _figures(access: Access, row: Round) -> RoundFigures:
    chain = figures_of(Round.objects.of(access.project).chain_of(row))
    return next(found for found in chain if found.round.pk == row.pk)


@router.get("/projects/{slug}/rounds", response=Page[RoundOut], exclude_unset=True, summary="List rounds")
def list_rounds(request: HttpRequest, slug: str, params: Query[ListParams]) -> Json:
    """Blind reviewers get the rounds without pending samples."""
    access = enter(request, slug, Scope.READ)
    page = params.page(rounds_shown(access, Round.objects.of(access.project)))
    return page.response(lambda row: _figures(access, row))


@router.post("/projects/{slug}/rounds", response={202: RoundOut}, summary="Start a round")
def create_round(request: HttpRequest, response: HttpResponse, slug: str, body: RoundIn) -> Status[RoundFigures]:
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
def get_round(request: HttpRequest, round_id: str) -> RoundFigures:
    return _figures(*_entered(request, round_id))


@router.post("/rounds/{round_id}/export", response={202: RunOut}, summary="Export the approved trajectories of a round")
def create_round_export(
    request: HttpRequest, response: HttpResponse, round_id: str, body: RoundExportIn | None = None
) -> Status[Json]:
    """409 `not_ready` names the missing step. A reviewed round is exported by itself within a minute."""
    access, row = _entered(request, round_id, Scope.EXPORT)
    run = export_round(access=access, round_=row, without_pending=bool(body and body.without_pending))
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))
