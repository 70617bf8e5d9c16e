from datetime import datetime

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import Field

from curation.exports.access import entered
from curation.exports.hub.kind import NAME, PushIn, pushes_of
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.runs.pages.schemas import RunOut, accepted_run
from curation.web.schemas import Id, Out, Username, answer

router = Router(tags=["exports"])
Json = dict[str, object]


class PushOut(Out):
    run: Id = Field(validation_alias="id", examples=["98"])
    state: str = Field(examples=["succeeded"])
    repository: str = Field(validation_alias="params.repository", examples=["acme/shell-agents"])
    private: bool = Field(validation_alias="params.private")
    commit: str | None = Field(
        None, validation_alias="result.commit", examples=["4f1c2d9e8b7a6f5e4d3c2b1a09f8e7d6c5b4a392"]
    )
    url: str | None = Field(None, validation_alias="result.url", description="Address of the commit.")
    created_by: Username | None = Field(examples=["demo"])
    created_at: datetime = Field(examples=["2026-01-31T09:30:00Z"])


@router.post("/exports/{export_id}/pushes", response={202: RunOut}, summary="Push an export to a hub")
def post_push(request: HttpRequest, response: HttpResponse, export_id: str, body: PushIn) -> Status[Json]:
    """Launch a run of kind `push`. Its `result` has the `commit` and its `url`. The project's admins allow it in the
    settings `hub`, the operator of the server with `HUB_TOKENS`."""
    access, export = entered(request, export_id, Scope.EXPORT)
    params = {"export": str(export.pk), **body.model_dump()}
    run = launch(project=access.project, kind=NAME, params=params, user=access.user)
    return accepted_run(response, run)


@router.get(
    "/exports/{export_id}/pushes",
    response=answer("PushList", data=list[PushOut], next_cursor=(str | None, None)),
    summary="Its pushes to a hub",
)
def list_pushes(request: HttpRequest, export_id: str) -> Json:
    """The newest first, 50 at most."""
    _, export = entered(request, export_id)
    return {"data": list(pushes_of(export)), "next_cursor": None}
