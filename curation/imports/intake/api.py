"""REST: the addresses to which OpenTelemetry exporters send spans and log records (OTLP/HTTP)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from curation.imports.intake.otlp import JSON, LOGS, TRACES, Signal, answer_of, read_request, wanted_rows
from curation.imports.intake.spool import RECORDS, SPANS, keep_batch
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.web.schemas import Strict

router = Router(tags=["imports"])


def _body(example: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI of a request body. Protobuf is left to exporters: generators of clients drop a call that takes
    it."""
    content = {JSON: {"schema": {"type": "object"}, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


class PartialTraceSuccess(Schema):
    """How many spans were rejected because they cannot be read, and why."""

    rejected_spans: str = Field(alias="rejectedSpans", examples=["1"])
    error_message: str = Field(alias="errorMessage", examples=["1 span cannot be read: it is no object."])


class ExportTraceServiceResponse(Strict):
    """OTLP's answer: empty if all spans were accepted."""

    partial_success: PartialTraceSuccess | None = Field(None, alias="partialSuccess")


@router.post(
    "/projects/{slug}/otlp/v1/traces",
    response=ExportTraceServiceResponse,
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


class PartialLogsSuccess(Schema):
    """How many log records were rejected because they cannot be read, and why."""

    rejected_log_records: str = Field(alias="rejectedLogRecords", examples=["1"])
    error_message: str = Field(alias="errorMessage", examples=["1 log record cannot be read: it is no object."])


class ExportLogsServiceResponse(Strict):
    """OTLP's answer: empty if all log records were accepted."""

    partial_success: PartialLogsSuccess | None = Field(None, alias="partialSuccess")


@router.post(
    "/projects/{slug}/otlp/v1/logs",
    response=ExportLogsServiceResponse,
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
