import os

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from ninja import Router, Schema, Status
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field

from curation.dashboard.system.health import ComponentOut, check_components
from curation.dashboard.system.metrics import exposition
from curation.projects.models import Scope
from curation.projects.tokens.auth import token_of
from curation.runs.workers.sandbox_report import sandbox_reports
from curation.web.http.documented import answers_with_file
from curation.web.problems import NotAllowed, NotAuthenticated, Problem

router = Router(tags=["operation"], auth=None)


class HealthOut(Schema):
    status: str = Field(examples=["ok"])
    instance: str | None = Field(
        None, examples=["5d41402abc4b2a76"], description="`WINNOW_INSTANCE`; missing if it is not set."
    )


class FindingOut(Schema):
    name: str = Field(examples=["image"])
    works: bool
    detail: str = Field(examples=["winnow-sandbox:51a8434704a1 is not there"])
    remedy: str = Field(examples=["Run `manage.py sandbox build`."])


class SandboxOut(Schema):
    """The report of one sandbox worker, or of this process if there is none."""

    backend: str = Field(examples=["docker"], description="The backend in use; empty if none works.")
    findings: list[FindingOut]


class ReadyOut(Schema):
    ready: bool
    parts: list[ComponentOut]
    sandboxes: list[SandboxOut]


@router.get("/health", response=HealthOut, exclude_none=True, summary="The process is alive")
def health(request: HttpRequest) -> HealthOut:
    return HealthOut(status="ok", instance=os.environ.get("WINNOW_INSTANCE") or None)


@router.get("/ready", response={200: ReadyOut, 503: ReadyOut}, summary="Database, broker, disk, files and sandbox")
def ready(request: HttpRequest) -> Status[dict[str, object]]:
    """503 while the database or the broker does not respond, a disk is full, or a worker has other files than the web
    server. A missing sandbox is reported but does not count.

    `parts` and `sandboxes` are empty for callers without the right to read the metrics.
    """
    components = check_components()
    is_ready = all(component.ok for component in components if component.needed)
    status = 200 if is_ready else 503
    try:
        _require_operator(request)
    except Problem:
        return Status(status, {"ready": is_ready, "parts": [], "sandboxes": []})
    return Status(status, {"ready": is_ready, "parts": components, "sandboxes": sandbox_reports()})


@router.get(
    "/metrics",
    openapi_extra=answers_with_file("text/plain", has_etag=False),
    summary="Metrics in Prometheus' text format",
)
def metrics(request: HttpRequest) -> HttpResponse:
    """Needs `METRICS_TOKEN` or a token with the scope `admin`; open on a loopback server without `METRICS_TOKEN`."""
    _require_operator(request)
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def _require_operator(request: HttpRequest) -> None:
    if settings.LOOPBACK_ONLY and not settings.METRICS_TOKEN:
        return
    sent = request.headers.get("Authorization", "")
    if settings.METRICS_TOKEN and constant_time_compare(sent, f"Bearer {settings.METRICS_TOKEN}"):
        return
    row = token_of(sent)
    if row is None:
        raise NotAuthenticated("Send `Authorization: Bearer …` with METRICS_TOKEN, or a token with the scope `admin`.")
    if Scope.ADMIN not in row.scopes:
        raise NotAllowed("The metrics of all projects need a token with the scope `admin`.")
