"""REST calls of held-out splits: lists, rows, contamination; and a line-up of all models that a server lists."""

from collections.abc import Sequence
from typing import Any, ClassVar

import orjson
from django.core.files import File
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import ValidationError

from curation.evaluations.compare.baseline import unpin_baseline
from curation.evaluations.contamination.reads import newest_check
from curation.evaluations.models import ContaminatedRow, Split, SplitRow
from curation.evaluations.screen.add_served_models import add_served
from curation.evaluations.screen.schemas import contamination_out
from curation.evaluations.splits import schemas as s
from curation.imports.sources.stored import keep
from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.runs.launch import launch
from curation.runs.pages.schemas import RunOut, run_out
from curation.web.http.etag import set_etag
from curation.web.ids import find
from curation.web.lists.keyset import paginate
from curation.web.lists.params import ListParams, one_of, words
from curation.web.problems import FieldError, Invalid
from judging.commands.contamination import Level

router = Router(tags=["splits"])
Answer = dict[str, object]
_CHECK_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": s.CheckIn.model_json_schema(), "example": {"export": "12"}},
            "multipart/form-data": {
                "schema": {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
            },
        },
    }
}


class SplitListParams(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")


class SplitRowParams(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")

    tier: list[str] = []
    source: list[str] = []


class ContaminatedParams(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")

    level: list[str] = []


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
    _, split = _entered(request, split_id)
    check = newest_check(split)
    set_etag(response, f"{split.pk}-{split.rows_count}-{split.baseline_id or 0}-{check.pk if check else 0}")
    return s.split_out(split, contamination_out(check) if check else None)


@router.get("/splits/{split_id}/rows", response=s.SplitRowPage, exclude_unset=True, summary="Rows of a split")
def list_rows(request: HttpRequest, split_id: str, params: Query[SplitRowParams]) -> Answer:
    _, split = _entered(request, split_id)
    rows = SplitRow.objects.filter(split=split).select_related("text")
    for group in words(params.tier):
        rows = rows.filter(tier__in=group)
    for group in words(params.source):
        rows = rows.filter(source__in=group)
    page = paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit, count=params.count)
    answer: Answer = {"data": [s.split_row_out(row) for row in page.rows], "next_cursor": page.next_cursor}
    return answer | ({"total": page.total} if params.count else {})


@router.post(
    "/splits/{split_id}/contamination",
    response={202: RunOut},
    openapi_extra=_CHECK_BODY,
    summary="Hold a split against training rows",
)
def post_check(request: HttpRequest, response: HttpResponse, split_id: str) -> Status[Answer]:
    """JSON with `export`, `upload` or `training_split`; or a form with the training `file`."""
    access, split = _entered(request, split_id, Scope.RUN)
    params = {"split": str(split.pk), **_check_params(request, access.project)}
    run = launch(project=access.project, kind="contamination", params=params, user=access.user)
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))


@router.get(
    "/splits/{split_id}/contamination",
    response=s.CheckPage,
    exclude_unset=True,
    summary="Contaminated rows of a split, by the newest check",
)
def list_contaminated(request: HttpRequest, split_id: str, params: Query[ContaminatedParams]) -> Answer:
    _, split = _entered(request, split_id)
    check = newest_check(split)
    rows = ContaminatedRow.objects.filter(check_of=check).select_related("row")
    for group in words(params.level):
        rows = rows.filter(level__in=one_of("level", group, [level.value for level in Level]))
    page = paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit, count=params.count)
    answer: Answer = {
        "check": contamination_out(check) if check else None,
        "data": [s.contaminated_out(row) for row in page.rows],
        "next_cursor": page.next_cursor,
    }
    return answer | ({"total": page.total} if params.count else {})


@router.delete("/splits/{split_id}/baseline", response={204: None}, summary="Take a split's baseline away")
def delete_baseline(request: HttpRequest, split_id: str) -> Status[None]:
    access, split = _entered(request, split_id, Scope.RUN)
    unpin_baseline(access=access, split=split)
    return Status(204, None)


@router.post(
    "/projects/{slug}/models/{name}/line-up", response=s.LineUpOut, summary="Add every model that its server lists"
)
def post_line_up(request: HttpRequest, slug: str, name: str) -> Answer:
    """One endpoint for each, with the address, key variable and limits of `name`; embedding models are left out."""
    found = add_served(access=enter(request, slug, Scope.ADMIN), name=name)
    return {"added": list(found.added), "known": list(found.known)}


def _check_params(request: HttpRequest, project: Project) -> dict[str, Any]:
    if request.content_type == "multipart/form-data":
        file = request.FILES.get("file")
        if file is None:
            raise Invalid("The form has no `file`.", errors=[FieldError("file", "is missing")])
        return {"upload": keep(project=project, file=File(file.file, name=file.name), name=file.name or "train.jsonl")}
    try:
        read = s.CheckIn.model_validate(orjson.loads(request.body or b"{}"))
    except orjson.JSONDecodeError as error:
        raise Invalid(f"The body is not JSON: {error}.") from None
    except ValidationError as error:
        errors = [FieldError(".".join(map(str, entry["loc"])), entry["msg"]) for entry in error.errors()]
        raise Invalid("; ".join(f"{e.path}: {e.message}" for e in errors), errors=errors) from None
    return read.model_dump()


def _entered(request: HttpRequest, split_id: str, scope: str = Scope.READ) -> tuple[Access, Split]:
    rows = Split.objects.visible_to(principal_of(request).user).select_related("baseline")
    split = find(rows, split_id, "split")
    return enter(request, split.project, scope), split
