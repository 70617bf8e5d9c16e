"""REST: the addresses to which OpenTelemetry exporters send spans and log records (OTLP/HTTP)."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from curation.imports.intake.otlp import JSON, LOGS, TRACES, Signal, answer_of, read_request, wanted_rows
from curation.imports.intake.spool import RECORDS, SPANS, keep_batch
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.web.schemas import answer

router = Router(tags=["imports"])


def _body(example: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI of a request body. Protobuf is left to exporters: generators of clients drop a call that takes
    it."""
    content = {JSON: {"schema": {"type": "object"}, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def _response(name: str, partial: str, rejected: str) -> type[Schema]:
    """Return OTLP's answer: empty if all spans or log records were accepted; else how many were rejected because they
    cannot be read, and why."""
    success = answer(partial, **{rejected: Annotated[str, Field(examples=["1"])], "errorMessage": str})
    return answer(name, partialSuccess=(success | None, None))


@router.post(
    "/projects/{slug}/otlp/v1/traces",
    response=_response("ExportTraceServiceResponse", "PartialTraceSuccess", "rejectedSpans"),
    openapi_extra=_body({"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}),
    summary="Send spans, as OpenTelemetry exporters do",
)
def export_traces(request: HttpRequest, slug: str) -> HttpResponse:
    """The spans of model calls are stored, and the next import makes turns of them, each once. Others are left out.

    The settings `intake` say which services and which share of the traces are taken. The body is JSON or
    `application/x-protobuf`, also packed with gzip. Spans that cannot be read are counted in `partialSuccess`, and the
    others are stored.
    """
    return _export(request, slug, TRACES)


@router.post(
    "/projects/{slug}/otlp/v1/logs",
    response=_response("ExportLogsServiceResponse", "PartialLogsSuccess", "rejectedLogRecords"),
    openapi_extra=_body({"resourceLogs": [{"scopeLogs": [{"logRecords": []}]}]}),
    summary="Send log records, as OpenTelemetry exporters do",
)
def export_logs(request: HttpRequest, slug: str) -> HttpResponse:
    """The GenAI events of model calls are stored, and become turns when all messages of a call are there. Others are
    left out.

    A call in one record (`gen_ai.client.inference.operation.details`) is imported next, a call in several 20 s after
    its last one. The settings `intake` and the encodings are those of spans.
    """
    return _export(request, slug, LOGS)


def _export(request: HttpRequest, slug: str, signal: Signal) -> HttpResponse:
    access = enter(request, slug, Scope.RUN)
    access.project.require_writable()
    kind = request.content_type or ""
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    document, refused = read_request(signal, request.body, content_type=kind, encoding=encoding)
    rows, reasons = wanted_rows(signal, document, access.project.settings.intake)
    keep_batch(project=access.project, user=access.user, rows=rows, ending=RECORDS if signal is LOGS else SPANS)
    return HttpResponse(answer_of(signal, [*refused, *reasons], content_type=kind), content_type=kind)
