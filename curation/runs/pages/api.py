from datetime import datetime
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.projects.removal.views import ArchiveIn, DeletionOut, accepted
from curation.runs import control
from curation.runs.calls.move import moved_lines
from curation.runs.kinds import Estimate, launchable_kind
from curation.runs.launch import estimate, launch, require_scopes
from curation.runs.models import Call, Item, Run, RunEvent
from curation.runs.pages.filters import CallList, EventList, ItemList, RunList, kind_names
from curation.runs.pages.results import require_results, why_hidden
from curation.runs.pages.schemas import RunOut, accepted_run, run_out, run_row, run_version
from curation.runs.removal import archive_row, delete_row
from curation.web.http.responses import answers_with_file, seen_version, set_etag
from curation.web.ids import find
from curation.web.problems import NotFound
from curation.web.schemas import Id, Money, NotEmpty, Out, Page, StrictModel

router = Router(tags=["runs"])


class RunIn(StrictModel):
    """`budget` in US dollars; the run stops cleanly before it is overrun."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "duel",
                    "params": {"king_model": "small", "challenger_model": "large", "judges": ["a", "b", "c"]},
                    "budget": "5.00",
                }
            ]
        },
    )

    kind: str = Field(examples=["duel"])
    params: dict[str, Any] = {}
    budget: Decimal | None = Field(None, examples=["5.00"])


class EstimateIn(StrictModel):
    kind: str = Field(examples=["duel"])
    params: dict[str, Any] = {}
    budget: Decimal | None = Field(None, examples=["5.00"], description="A note says if it does not suffice.")


class ResumeIn(StrictModel):
    budget: Decimal | None = Field(None, examples=["10.00"])


class ItemOut(Schema):
    id: Id
    stage: str = Field(examples=["judge"])
    key: str = Field(examples=["812:judge-a:king_first"])
    state: str = Field(examples=["failed"])
    reason: NotEmpty = Field(examples=["judge-a: no answer within 60 s (tried 6 times)"])
    data: dict[str, Any]
    result: dict[str, Any]
    finished_at: datetime | None


class EventOut(Schema):
    id: Id
    level: str = Field(examples=["info"])
    message: str
    created_at: datetime


class CallOut(Out):
    """One call that left for a model; `cost` null is unknown."""

    id: Id
    run: Id = Field(validation_alias="run_id", examples=["12"])
    item: Id | None = Field(validation_alias="item_id")
    model: str = Field(validation_alias="endpoint_name", examples=["judge-a"])
    status: str = Field(examples=["ok"])
    error: NotEmpty
    attempt: int
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    cost: Money | None
    latency_ms: int | None
    first_token_ms: int | None = Field(description="Until the first token of an answer that was streamed.")
    finish_reason: NotEmpty
    instructions_hash: NotEmpty
    created_at: datetime


@router.get("/projects/{slug}/runs", response=Page[RunOut], exclude_unset=True, summary="List runs, newest first")
def list_runs(request: HttpRequest, slug: str, params: Query[RunList]) -> dict[str, object]:
    """While you review blind and a sample is pending, `result` is null where it tells of samples."""
    access = enter(request, slug, Scope.READ)
    runs = Run.objects.of(access.project).filter(kind__in=kind_names()).select_related("project")
    page = params.page(params.narrow(runs))
    hidden = why_hidden(access, page.rows)
    return page.response(lambda run: run_row(run, hidden=run.pk in hidden))


@router.post("/projects/{slug}/runs", response={202: RunOut}, summary="Launch a run")
def post_run(request: HttpRequest, response: HttpResponse, slug: str, body: RunIn) -> Status[dict[str, object]]:
    access = enter(request, slug, Scope.RUN)
    require_scopes(access, launchable_kind(body.kind).name, body.params)
    run = launch(project=access.project, kind=body.kind, params=body.params, user=access.user, budget=body.budget)
    return accepted_run(response, run)


@router.post("/projects/{slug}/runs/estimate", response=Estimate, summary="Estimate the cost of a launch")
def post_estimate(request: HttpRequest, slug: str, body: EstimateIn) -> Estimate:
    """Needs the scopes of the launch."""
    access = enter(request, slug, Scope.RUN)
    require_scopes(access, launchable_kind(body.kind).name, body.params)
    return estimate(project=access.project, kind=body.kind, params=body.params, budget=body.budget)


@router.get("/runs/{run_id}", response=RunOut, summary="One run, and the reasons why it waits")
def get_run(request: HttpRequest, response: HttpResponse, run_id: str) -> dict[str, object]:
    run, access = _run(request, run_id, Scope.READ)
    set_etag(response, run_version(run))
    return run_out(run, hidden=bool(why_hidden(access, [run])))


@router.patch("/runs/{run_id}", response=RunOut, summary="Archive or unarchive a run")
def patch_run(request: HttpRequest, response: HttpResponse, run_id: str, body: ArchiveIn) -> dict[str, object]:
    run, access = _run(request, run_id, Scope.READ)
    seen_version(request, run_version(run))
    archive_row(access=access, row=run, label=run.label, archived=body.archived)
    set_etag(response, run_version(run))
    return run_out(run)


@router.delete("/runs/{run_id}", response={202: DeletionOut}, summary="Delete a run that nothing rests on")
def delete_one_run(request: HttpRequest, response: HttpResponse, run_id: str) -> Status[DeletionOut]:
    """409 `in_use` names the objects that need it in `detail` and `current.rests`."""
    run, access = _run(request, run_id, Scope.READ)
    seen_version(request, run_version(run))
    return accepted(delete_row(access=access, row=run, label=run.label), response)


@router.get("/runs/{run_id}/items", response=Page[ItemOut], summary="A run's items")
def list_items(request: HttpRequest, run_id: str, params: Query[ItemList]) -> dict[str, object]:
    """While you review blind, they open when no sample of the project is pending; those of a run that tells nothing of
    samples are open."""
    run, access = _run(request, run_id, Scope.READ)
    require_results(access, run)
    return params.page(params.narrow(Item.objects.filter(run=run))).response()


@router.get("/runs/{run_id}/events", response=Page[EventOut], summary="A run's log")
def list_events(request: HttpRequest, run_id: str, params: Query[EventList]) -> dict[str, object]:
    run, _ = _run(request, run_id, Scope.READ)
    return params.page(params.narrow(RunEvent.objects.filter(run=run))).response()


@router.get("/runs/{run_id}/calls", response=Page[CallOut], summary="Every model call of a run")
def list_run_calls(request: HttpRequest, run_id: str, params: Query[CallList]) -> dict[str, object]:
    """While you review blind, they open as the items do: the tokens of an answer tell which one it is."""
    run, access = _run(request, run_id, Scope.READ)
    require_results(access, run)
    return params.read(Call.objects.filter(run=run)).response()


@router.get(
    "/runs/{run_id}/moved",
    openapi_extra=answers_with_file("application/gzip", has_etag=False),
    summary="The moved texts, items and calls of a run",
)
def get_moved(request: HttpRequest, run_id: str) -> StreamingHttpResponse:
    """JSON lines as gzip; `row` of each is `text`, `item` or `call`. 404 unless `settings.runs.keep_texts_days` has
    moved any: then `texts_moved_at` is set, and for items and calls `rows_moved_at`."""
    run, access = _run(request, run_id, Scope.READ)
    require_results(access, run)
    if not run.text_files:
        raise NotFound(f"No rows of {run.label} are in a file.")
    response = StreamingHttpResponse(moved_lines(run), content_type="application/gzip")
    response["Content-Disposition"] = f'attachment; filename="run-{run.pk}.jsonl.gz"'
    return response


@router.post("/runs/{run_id}/cancel", response=RunOut, summary="Stop a run; finished items stay")
def post_cancel(request: HttpRequest, run_id: str) -> dict[str, object]:
    run, access = _run(request, run_id, Scope.RUN)
    return run_out(control.cancel(run=run, user=access.user))


@router.post("/runs/{run_id}/resume", response={202: RunOut}, summary="Go on with a stopped run")
def post_resume(
    request: HttpRequest, response: HttpResponse, run_id: str, body: ResumeIn | None = None
) -> Status[dict[str, object]]:
    run, access = _run(request, run_id, Scope.RUN)
    require_scopes(access, run.kind, run.params)
    return accepted_run(response, control.resume(run=run, user=access.user, budget=body.budget if body else None))


@router.post("/runs/{run_id}/retry-failed", response={202: RunOut}, summary="Try the failed items again")
def post_retry_failed(request: HttpRequest, response: HttpResponse, run_id: str) -> Status[dict[str, object]]:
    """Needs the scopes of its launch."""
    run, access = _run(request, run_id, Scope.RUN)
    require_scopes(access, run.kind, run.params)
    return accepted_run(response, control.retry_failed(run=run, user=access.user))


@router.post("/runs/{run_id}/clone", response={202: RunOut}, summary="Launch the same again")
def post_clone(request: HttpRequest, response: HttpResponse, run_id: str) -> Status[dict[str, object]]:
    run, access = _run(request, run_id, Scope.RUN)
    require_scopes(access, launchable_kind(run.kind).name, run.params)
    return accepted_run(response, control.clone(run=run, user=access.user))


def _run(request: HttpRequest, run_id: str, scope: str) -> tuple[Run, Access]:
    visible = Project.objects.visible_to(principal_of(request).user)
    mine = Run.objects.filter(project__in=visible, deleting_at=None)
    run = find(mine.select_related("project"), run_id, "run")
    return run, enter(request, run.project, scope)
