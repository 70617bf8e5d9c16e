from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from curation.evaluations.compare.baseline import pin_baseline, unpin_baseline
from curation.evaluations.compare.compare import ModelComparison, compare
from curation.evaluations.compare.leaderboard import Leaderboard, leaderboard
from curation.evaluations.compare.pairs import model_of, models_to_compare
from curation.evaluations.compare.reports import comparison_json, report
from curation.evaluations.live.schemas import LiveScoreOut
from curation.evaluations.models import EvaluatedModel, EvaluationKind
from curation.evaluations.screen.api import enter_evaluation
from curation.evaluations.screen.schemas import ScoreOut
from curation.evaluations.splits.api import enter_split, split_version
from curation.evaluations.splits.schemas import SplitRef, split_out, split_ref
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.samples.blind import refuse_pending
from curation.web.http.responses import answers_with_file, seen_version
from curation.web.lists.filters import ListParams
from curation.web.schemas import StrictModel

router = Router(tags=["evaluations"])
Answer = dict[str, object]
Json = dict[str, Any]


class LeaderOut(Schema):
    """`against` compares with the pinned baseline; `regressed`: a metric is shown to be worse."""

    place: int
    evaluation: str
    baseline: bool
    regressed: bool
    against: Json | None
    created_at: datetime
    figures: ScoreOut | LiveScoreOut


class LeaderboardOut(Schema):
    split: SplitRef | None
    kind: str = Field(examples=["static"])
    mixed: bool = Field(description="The evaluations sent different numbers of rows.")
    settings: list[str] = Field([], description="Names of the settings that the models do not share.")
    data: list[LeaderOut]
    next_cursor: str | None = None


class ComparisonOut(Schema):
    """`low` and `high` are the 95 % interval of `delta`. `said` is "likely different" (`p_corrected` below 0.05) or
    "clearly different" (below 0.01): `p_tasks` of the sign-flip test over tasks, corrected by Holm for all
    `comparisons`; "equivalent within …" if the difference is shown to be below `margin` (`p_equivalence` of two
    one-sided tests, corrected likewise, below 0.05); else "not known"; or "incomplete", if results are missing. `note`
    says where the interval alone would say something else. `tasks_missing` are the further tasks that the change would
    need to be clear. `p` is McNemar's, rows one by one; it decides nothing."""

    before: Json
    after: Json
    rows: int
    tasks: int
    unpaired: int
    missing: int = Field(description="Rows or episodes that both were asked for and one of them has no result of.")
    incomplete: bool = Field(description="Results are missing: every verdict is `incomplete`.")
    notes: list[str] = Field([], description="What to know before the figures are read, such as second tries.")
    comparisons: int
    method: str
    conclusion: str = Field(description="In words, from the verdicts alone.")
    metrics: list[Json]
    tiers: list[Json]
    gains: list[Json]
    losses: list[Json]


class BaselineIn(StrictModel):
    model: str = Field("", examples=["base"], description="Optional if the evaluation has one model.")


class CompareParams(ListParams):
    model_before: str | None = Field(None, description="Required if the evaluation has several models.")
    model_after: str | None = None


class LeaderboardParams(ListParams):
    kind: EvaluationKind | None = Field(None, description="static or live. Default: static if there is one.")
    split: str | None = Field(None, description="Id of a split. Default: the split that was evaluated last.")


@router.get("/evaluations/{before}/compare/{after}", response=ComparisonOut, summary="Compare two evaluations")
def compare_evaluations(request: HttpRequest, before: str, after: str, params: Query[CompareParams]) -> Answer:
    """Pairs the rows that both answered. Both ids can be the same evaluation, with two of its models."""
    return comparison_json(_compared(request, before, after, params))


@router.get(
    "/evaluations/{before}/compare/{after}/{name}",
    openapi_extra=answers_with_file("text/markdown", "text/csv", "application/json"),
    url_name="comparison-file",
    summary="A comparison's file",
)
def comparison_file(
    request: HttpRequest, before: str, after: str, name: str, params: Query[CompareParams]
) -> HttpResponse:
    """`comparison.md`, `comparison.csv` or `comparison.json`."""
    text, media = report(_compared(request, before, after, params), name)
    response = HttpResponse(text, content_type=media)
    response["Content-Disposition"] = f'attachment; filename="{before}-{after}-{name}"'
    return response


@router.get("/projects/{slug}/leaderboard", response=LeaderboardOut, summary="Models on one split, the best first")
def get_leaderboard(request: HttpRequest, slug: str, params: Query[LeaderboardParams]) -> Answer:
    access = enter(request, slug, Scope.READ)
    return _leaderboard_out(leaderboard(access, params.split, kind=params.kind, limit=params.limit))


@router.post("/evaluations/{evaluation_id}/baseline", response=LeaderboardOut, summary="Pin the split's baseline")
def post_baseline(request: HttpRequest, evaluation_id: str, body: BaselineIn) -> Answer:
    """Compares every evaluation of the split with this model from now on; returns the leaderboard."""
    access, evaluation = enter_evaluation(request, evaluation_id, Scope.RUN)
    split = pin_baseline(access=access, model=model_of(evaluation, body.model or None))
    return _leaderboard_out(leaderboard(access, str(split.pk), kind=evaluation.kind))


@router.delete("/splits/{split_id}/baseline", tags=["splits"], response={204: None}, summary="Unpin a split's baseline")
def delete_baseline(request: HttpRequest, split_id: str, kind: EvaluationKind = EvaluationKind.STATIC) -> Status[None]:
    """The baseline of its static screens, or with `kind=live` of its live episodes."""
    access, split = enter_split(request, split_id, Scope.RUN)
    seen_version(request, split_version(split), now=split_out(split, None))
    unpin_baseline(access=access, split=split, kind=kind)
    return Status(204, None)


def _compared(request: HttpRequest, before: str, after: str, params: CompareParams) -> ModelComparison:
    access, _ = enter_evaluation(request, before)
    first, second = models_to_compare(
        access.project, before, after, model_before=params.model_before, model_after=params.model_after
    )
    refuse_pending(access, second.evaluation.samples(), f"evaluation {second.evaluation_id}")
    return compare(before=first, after=second)


def _leaderboard_out(board: Leaderboard) -> Json:
    split = board.split
    entries = (
        [_leader(rank, entry, split.baseline_of(board.kind)) for rank, entry in enumerate(board.entries, 1)]
        if split
        else []
    )
    return {
        "split": split_ref(split),
        "kind": board.kind.value,
        "mixed": board.mixed,
        "settings": board.settings,
        "data": entries,
        "next_cursor": None,
    }


def _leader(rank: int, entry: EvaluatedModel, baseline: EvaluatedModel | None) -> Json:
    return {
        "place": rank,
        "evaluation": str(entry.evaluation_id),
        "baseline": baseline is not None and baseline.pk == entry.pk,
        "regressed": entry.regressed,
        "against": entry.against or None,
        "created_at": entry.evaluation.created_at,
        "figures": entry.figures,
    }
