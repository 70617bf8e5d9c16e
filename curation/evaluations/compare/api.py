from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from curation.evaluations.compare import schemas as s
from curation.evaluations.compare.baseline import pin_baseline, unpin_baseline
from curation.evaluations.compare.compare import ModelComparison, compare, model_of, models_to_compare
from curation.evaluations.compare.leaderboard import leaderboard
from curation.evaluations.compare.reports import comparison_json, report
from curation.evaluations.models import EvaluationKind
from curation.evaluations.screen.api import enter_evaluation
from curation.evaluations.splits.api import enter_split, split_version
from curation.evaluations.splits.schemas import split_out
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.samples.blind import refuse_pending
from curation.web.http.responses import answers_with_file, seen_version
from curation.web.lists.params import ListParams

router = Router(tags=["evaluations"])
Answer = dict[str, object]


class CompareParams(ListParams):
    model_before: str | None = Field(None, description="Required if the evaluation has several models.")
    model_after: str | None = None


class LeaderboardParams(ListParams):
    kind: EvaluationKind | None = Field(None, description="static or live. Default: static if there is one.")
    split: str | None = Field(None, description="Id of a split. Default: the split that was evaluated last.")


@router.get("/evaluations/{before}/compare/{after}", response=s.ComparisonOut, summary="Compare two evaluations")
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


@router.get("/projects/{slug}/leaderboard", response=s.LeaderboardOut, summary="Models on one split, the best first")
def get_leaderboard(request: HttpRequest, slug: str, params: Query[LeaderboardParams]) -> Answer:
    access = enter(request, slug, Scope.READ)
    return s.leaderboard_out(leaderboard(access, params.split, kind=params.kind, limit=params.limit))


@router.post("/evaluations/{evaluation_id}/baseline", response=s.LeaderboardOut, summary="Pin the split's baseline")
def post_baseline(request: HttpRequest, evaluation_id: str, body: s.BaselineIn) -> Answer:
    """Compares every evaluation of the split with this model from now on; returns the leaderboard."""
    access, evaluation = enter_evaluation(request, evaluation_id, Scope.RUN)
    split = pin_baseline(access=access, model=model_of(evaluation, body.model or None))
    return s.leaderboard_out(leaderboard(access, str(split.pk), kind=evaluation.kind))


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
