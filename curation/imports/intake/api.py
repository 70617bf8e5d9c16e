"""REST: the address to which OpenTelemetry exporters send spans (OTLP/HTTP)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import ConfigDict

from curation.imports.intake.otlp import JSON, PROTOBUF, read_request, wanted_rows
from curation.imports.intake.spool import keep_batch
from curation.projects.access import enter
from curation.projects.models import Scope

router = Router(tags=["imports"])
_EXAMPLE: dict[str, Any] = {"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"type": "object"}, "example": _EXAMPLE},
            PROTOBUF: {"schema": {"type": "string", "format": "binary"}, "example": ""},
        },
    }
}


class ExportTraceServiceResponse(Schema):
    """OTLP's answer to spans that were accepted."""

    model_config = ConfigDict(extra="forbid")


@router.post(
    "/projects/{slug}/otlp/v1/traces",
    response=ExportTraceServiceResponse,
    openapi_extra=_BODY,
    summary="Send spans, as OpenTelemetry exporters do",
)
def export_traces(request: HttpRequest, slug: str) -> HttpResponse:
    """The spans of model calls are stored, and the next import makes turns of them, each once. Others are left out.

    The settings `intake` say which services and which share of the traces are taken. The body may be packed with gzip.
    """
    access = enter(request, slug, Scope.RUN)
    access.project.require_writable()
    kind = request.content_type or ""
    document = read_request(request.body, content_type=kind, encoding=request.headers.get("Content-Encoding", ""))
    keep_batch(project=access.project, user=access.user, rows=wanted_rows(document, access.project.settings.intake))
    return HttpResponse(b"" if kind == PROTOBUF else b"{}", content_type=kind)
