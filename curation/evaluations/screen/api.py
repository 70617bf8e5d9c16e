"""REST calls of evaluations: launch, figures, the log of answers, comparison, leaderboard, baseline."""

from decimal import Decimal, InvalidOperation
from typing import ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from curation.evaluations.compare.baseline import pin_baseline
from curation.evaluations.compare.compare import compare, model_of, sides
from curation.evaluations.compare.leaderboard import leaderboard
from curation.evaluations.compare.reports import comparison_json, report
from curation.evaluations.contamination.reads import newest_check
from curation.evaluations.live.figures import live_figures
from curation.evaluations.models import Evaluation, EvaluationKind
from curation.evaluations.screen import schemas as s
from curation.evaluations.screen.figures import figures_of
from curation.evaluations.screen.filters import CallListParams
from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.runs.pages.schemas import RunOut, run_out
from curation.web.http.etag import set_etag
from curation.web.ids import find
from curation.web.lists.keyset import paginate
from curation.web.lists.params import ListParams
from curation.web.problems import FieldError, Invalid

router = Router(tags=["evaluations"])
Answer = dict[str, object]


class EvaluationListParams(ListParams):
    sorts: ClassVar = ("-id", "id")

    split: str | None = Field(None, description="Only evaluations of this split.")


class CompareParams(ListParams):
    model_before: str | None = Field(None, description="Needed where the evaluation has several models.")
    model_after: str | None = None


class LeaderboardParams(ListParams):
    split: str | None = Field(None, description="A split's id; without it the one that was evaluated last.")


@router.get("/projects/{slug}/evaluations", response=s.EvaluationPage, exclude_unset=True, summary="List evaluations")
def list_evaluations(request: HttpRequest, slug: str, params: Query[EvaluationListParams]) -> Answer:
    access = enter(request, slug, Scope.READ)
    rows = Evaluation.objects.of(access.project)
    if params.split is not None:
        rows = rows.filter(split__pk=params.split if params.split.isdecimal() else 0)
    page = paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit, count=params.count)
    answer: Answer = {"data": [s.evaluation_brief(row) for row in page.rows], "next_cursor": page.next_cursor}
    return answer | ({"total": page.total} if params.count else {})


@router.post("/projects/{slug}/evaluations", response={202: RunOut}, summary="Start an evaluation")
def post_evaluation(request: HttpRequest, response: HttpResponse, slug: str, body: s.EvaluationIn) -> Status[Answer]:
    """Launches a run of kind `evaluate`; its `result` names the evaluation from the start."""
    access = enter(request, slug, Scope.RUN)
    params = body.model_dump(exclude={"budget"}, exclude_none=True)
    run = launch(project=access.project, kind="evaluate", params=params, user=access.user, budget=_budget(body.budget))
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))


@router.get("/evaluations/{evaluation_id}", response=s.EvaluationOut, summary="One evaluation: figures by model")
def get_evaluation(request: HttpRequest, response: HttpResponse, evaluation_id: str) -> Answer:
    """While its run is under way the figures are those of the answers so far."""
    _, evaluation = _entered(request, evaluation_id)
    check = newest_check(evaluation.split)
    run, checked = evaluation.run, check.pk if check else 0
    set_etag(response, f"{evaluation.pk}-{run.state}-{run.items_done}-{checked}")
    if evaluation.kind == EvaluationKind.LIVE:
        return s.evaluation_out(evaluation, live_figures(evaluation), check)
    return s.evaluation_out(evaluation, figures_of(evaluation, check), check)


@router.get(
    "/evaluations/{evaluation_id}/calls", response=s.ScreenedPage, exclude_unset=True, summary="Answers, one by one"
)
def list_calls(request: HttpRequest, evaluation_id: str, params: Query[CallListParams]) -> Answer:
    _, evaluation = _entered(request, evaluation_id)
    rows = params.apply(evaluation).with_texts()
    page = paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit, count=params.count)
    answer: Answer = {"data": [s.screened_out(row) for row in page.rows], "next_cursor": page.next_cursor}
    return answer | ({"total": page.total} if params.count else {})


@router.get("/evaluations/{before}/compare/{after}", response=s.ComparisonOut, summary="Compare two evaluations")
def compare_evaluations(request: HttpRequest, before: str, after: str, params: Query[CompareParams]) -> Answer:
    """Paired over the rows that both answered. Both ids may be the same evaluation, with two of its models."""
    access, _ = _entered(request, before)
    one, other = sides(access.project, before, after, model_before=params.model_before, model_after=params.model_after)
    return comparison_json(compare(before=one, after=other))


@router.get("/evaluations/{before}/compare/{after}/{name}", url_name="comparison-file", summary="A comparison's file")
def comparison_file(
    request: HttpRequest, before: str, after: str, name: str, params: Query[CompareParams]
) -> HttpResponse:
    """`comparison.md`, `comparison.csv` or `comparison.json`."""
    access, _ = _entered(request, before)
    one, other = sides(access.project, before, after, model_before=params.model_before, model_after=params.model_after)
    text, media = report(compare(before=one, after=other), name)
    response = HttpResponse(text, content_type=media)
    response["Content-Disposition"] = f'attachment; filename="{before}-{after}-{name}"'
    return response


@router.get("/projects/{slug}/leaderboard", response=s.LeaderboardOut, summary="Models on one split, the best first")
def get_leaderboard(request: HttpRequest, slug: str, params: Query[LeaderboardParams]) -> Answer:
    access = enter(request, slug, Scope.READ)
    board = leaderboard(access.project, params.split, limit=params.limit)
    split = board.split
    entries = [s.leader_out(place, entry, split) for place, entry in enumerate(board.entries, 1)] if split else []
    return {"split": s.split_ref(split), "mixed": board.mixed, "data": entries, "next_cursor": None}


@router.post("/evaluations/{evaluation_id}/baseline", response=s.LeaderboardOut, summary="Pin the split's baseline")
def post_baseline(request: HttpRequest, evaluation_id: str, body: s.BaselineIn) -> Answer:
    """Every evaluation of the split is held against this model from now on; answers the leaderboard."""
    access, evaluation = _entered(request, evaluation_id, Scope.RUN)
    split = pin_baseline(access=access, model=model_of(evaluation, body.model or None))
    board = leaderboard(access.project, str(split.pk))
    entries = [s.leader_out(place, entry, split) for place, entry in enumerate(board.entries, 1)]
    return {"split": s.split_ref(split), "mixed": board.mixed, "data": entries, "next_cursor": None}


def _entered(request: HttpRequest, evaluation_id: str, scope: str = Scope.READ) -> tuple[Access, Evaluation]:
    evaluation = find(Evaluation.objects.visible_to(principal_of(request).user), evaluation_id, "evaluation")
    return enter(request, evaluation.project, scope), evaluation


def _budget(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        raise Invalid(f"{text!r} is not an amount.", errors=[FieldError("budget", "not an amount")]) from None
