"""REST calls of contamination checks: check a split, list its contaminated rows."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import ValidationError

from curation.evaluations.contamination import schemas as s
from curation.evaluations.models import ContaminatedRow, ContaminationCheck
from curation.evaluations.splits.api import enter_split
from curation.imports.sources.stored import store_upload
from curation.projects.models import Project, Scope
from curation.runs.launch import launch
from curation.runs.pages.schemas import RunOut, run_out
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


class ContaminatedParams(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")

    level: list[str] = []


@router.post(
    "/splits/{split_id}/contamination",
    response={202: RunOut},
    openapi_extra=_CHECK_BODY,
    summary="Check a split for contamination",
)
def post_check(request: HttpRequest, response: HttpResponse, split_id: str) -> Status[Answer]:
    """JSON with `export`, `upload` or `training_split`; or a form with the training `file`."""
    access, split = enter_split(request, split_id, Scope.RUN)
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
    _, split = enter_split(request, split_id)
    check = ContaminationCheck.objects.newest(split)
    rows = ContaminatedRow.objects.filter(check_of=check).select_related("row")
    for group in words(params.level):
        rows = rows.filter(level__in=one_of("level", group, [level.value for level in Level]))
    page = paginate(rows, sort=params.order(), cursor=params.cursor, limit=params.limit, count=params.count)
    answer: Answer = {
        "check": s.contamination_out(check) if check else None,
        "data": [s.contaminated_out(row) for row in page.rows],
        "next_cursor": page.next_cursor,
    }
    return answer | ({"total": page.total} if params.count else {})


def _check_params(request: HttpRequest, project: Project) -> dict[str, Any]:
    if request.content_type == "multipart/form-data":
        file = request.FILES.get("file")
        if file is None:
            raise Invalid("The form has no `file`.", errors=[FieldError("file", "is missing")])
        return {"upload": store_upload(project=project, file=file, name=file.name or "train.jsonl")}
    try:
        return s.CheckIn.model_validate_json(request.body or b"{}").model_dump()
    except ValidationError as error:
        raise Invalid.of(error) from None
