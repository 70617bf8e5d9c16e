"""REST calls of held-out splits: make one, list them, read their rows."""

from collections.abc import Sequence
from typing import ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.evaluations.models import ContaminationCheck, Split, SplitRow
from curation.evaluations.splits import schemas as s
from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.runs.pages.schemas import RunOut, run_out
from curation.web.http.etag import set_etag
from curation.web.ids import find
from curation.web.lists.keyset import paginate
from curation.web.lists.params import ListParams, words

router = Router(tags=["splits"])
Answer = dict[str, object]


class SplitListParams(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")


class SplitRowParams(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")

    tier: list[str] = []
    source: list[str] = []


@router.get("/projects/{slug}/splits", response=s.SplitPage, exclude_unset=True, summary="List held-out splits")
def list_splits(request: HttpRequest, slug: str, params: Query[SplitListParams]) -> Answer:
    access = enter(request, slug, Scope.READ)
    rows = Split.objects.of(access.project).for_list()
    page = paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit, count=params.count)
    data = [s.split_brief(row) for row in page.rows]
    answer: Answer = {"data": data, "next_cursor": page.next_cursor}
    return answer | ({"total": page.total} if params.count else {})


@router.post("/projects/{slug}/splits", response={202: RunOut}, summary="Make a split from an export's file")
def post_split(request: HttpRequest, response: HttpResponse, slug: str, body: s.SplitIn) -> Status[Answer]:
    access = enter(request, slug, Scope.RUN)
    run = launch(project=access.project, kind="split", params=body.model_dump(), user=access.user)
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))


@router.get("/splits/{split_id}", response=s.SplitOut, summary="One split")
def get_split(request: HttpRequest, response: HttpResponse, split_id: str) -> Answer:
    _, split = enter_split(request, split_id)
    check = ContaminationCheck.objects.newest(split)
    set_etag(response, f"{split.pk}-{split.rows_count}-{split.baseline_id or 0}-{check.pk if check else 0}")
    return s.split_out(split, check)


@router.get("/splits/{split_id}/rows", response=s.SplitRowPage, exclude_unset=True, summary="Rows of a split")
def list_rows(request: HttpRequest, split_id: str, params: Query[SplitRowParams]) -> Answer:
    _, split = enter_split(request, split_id)
    rows = SplitRow.objects.filter(split=split).select_related("text")
    for group in words(params.tier):
        rows = rows.filter(tier__in=group)
    for group in words(params.source):
        rows = rows.filter(source__in=group)
    page = paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit, count=params.count)
    answer: Answer = {"data": [s.split_row_out(row) for row in page.rows], "next_cursor": page.next_cursor}
    return answer | ({"total": page.total} if params.count else {})


def enter_split(request: HttpRequest, split_id: str, scope: str = Scope.READ) -> tuple[Access, Split]:
    rows = Split.objects.visible_to(principal_of(request).user).select_related("baseline")
    split = find(rows, split_id, "split")
    return enter(request, split.project, scope), split
