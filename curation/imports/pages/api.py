"""REST calls of `curation.imports`."""

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema, Status
from pydantic import Field

from curation.imports.kinds import ImportParams
from curation.imports.pages.preview import preview
from curation.imports.pages.request import read_request
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.runs.pages.schemas import RunOut, run_out

router = Router(tags=["imports"])

_EXAMPLE = {"source": "https://example.org/turns.jsonl", "kind": "turns", "options": {"count": 2000, "seed": 1}}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": ImportParams.model_json_schema(), "example": _EXAMPLE},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "kind"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "kind": {"type": "string", "example": "turns"},
                        "options": {"type": "string", "description": "JSON", "example": '{"count": 2000}'},
                        "strict": {"type": "boolean"},
                        "name": {"type": "string"},
                    },
                }
            },
        },
    }
}


class ShownOut(Schema):
    label: str = Field(examples=["row 1, turn 2"])
    text: str


class RowErrorOut(Schema):
    row: int = Field(examples=[17])
    reason: str = Field(examples=["not JSON: unexpected end of data"])


class PreviewOut(Schema):
    """`upload` is what to give to `POST …/imports` instead of sending the file again."""

    upload: str | None
    format: str = Field(examples=["JSON lines"])
    layout: str = Field(examples=["chat rows (messages)"])
    columns: list[str] = Field(examples=[["instance_id", "messages"]])
    unit: str = Field(examples=["turns"])
    read: int = Field(examples=[100], description="Rows that were looked at.")
    rows: int | None = Field(examples=[5000], description="Null where only a part of a source on the web was fetched.")
    units: int | None = Field(examples=[61250], description="Estimated, without sampling.")
    shown: list[ShownOut]
    errors: list[RowErrorOut]


@router.post(
    "/projects/{slug}/imports", response={202: RunOut}, openapi_extra=_BODY, summary="Import rows of a file or a URL"
)
def create_import(request: HttpRequest, response: HttpResponse, slug: str) -> Status[dict[str, object]]:
    """A bad row is listed among the run's items with its reason, good rows go in; `strict` takes all or none."""
    access = enter(request, slug, Scope.RUN)
    params = read_request(request, access.project)
    run = launch(project=access.project, kind="import", params=params.model_dump(), user=access.user)
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))


@router.post(
    "/projects/{slug}/imports/preview",
    response=PreviewOut,
    openapi_extra=_BODY,
    summary="Look at a source before it is imported",
)
def preview_import(request: HttpRequest, slug: str) -> dict[str, object]:
    access = enter(request, slug, Scope.RUN)
    params = read_request(request, access.project)
    found = preview(project=access.project, params=params)
    return {"upload": params.upload or None, **asdict(found)}
