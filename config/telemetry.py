"""Traces and metrics by OpenTelemetry and errors by Sentry, each only if its setting names a receiver.

Only the attributes listed here leave the process: no body, no query, no SQL, no arguments, no variables, and of an
exception its type and where it was raised (`config.logs.describe`).
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from celery.signals import worker_process_shutdown
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.signals import connection_created
from opentelemetry import metrics, trace

from config.logs import ABOUT_MACHINES, hide_invitation
from curation.web.telemetry import current_ids

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from sentry_sdk.types import Event, Hint

# Attributes of spans and metrics. `url.path` is not one of them: the address of an invitation contains its secret.
SENT = frozenset(
    {
        *("http.request.method", "http.route", "http.response.status_code", "url.scheme", "server.address"),
        "server.port",
        *("celery.action", "celery.state", "celery.task_name", "messaging.message.id", "messaging.destination", "task"),
        *("db.system.name", "db.operation.name", "error.type"),
        *("winnow.operation", "winnow.kind", "winnow.stage", "winnow.endpoint", "winnow.model"),
        *("winnow.request_id", "winnow.task_id", "winnow.run_id", "winnow.item_id"),
    }
)
OF_EVENT = (
    *("event_id", "timestamp", "platform", "level", "logger", "transaction"),
    *("server_name", "release", "environment"),
)
OF_FRAME = (
    *("filename", "abs_path", "function", "module", "lineno"),
    *("pre_context", "context_line", "post_context", "in_app"),
)
# Loggers whose messages are constants with %s.
OURS = ("config.", "curation.", "judging.", "sandbox.", "django.", "celery.")


def _missing(setting: str, error: ImportError) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"{setting} is set, but a package that it needs is not installed ({error}): "
        "python -m pip install --no-deps --require-hashes --requirement requirements/telemetry.txt"
    )


def start_tracing(service: str) -> None:
    """Trace this process and measure it, as the `service` or as `OTEL_SERVICE_NAME` says. After a fork, not before."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return
    os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "http")
    os.environ.setdefault("OTEL_SERVICE_NAME", service)
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.celery import CeleryInstrumentor
        from opentelemetry.instrumentation.django import DjangoInstrumentor
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.metrics.view import View
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise _missing("OTEL_EXPORTER_OTLP_ENDPOINT", error) from None

    class Exporter(OTLPSpanExporter):
        def export(self, spans: "Sequence[ReadableSpan]") -> Any:
            return super().export([discreet(span) for span in spans])

    traces = TracerProvider()
    traces.add_span_processor(BatchSpanProcessor(Exporter()))
    trace.set_tracer_provider(traces)
    view = View(instrument_name="*", attribute_keys=set(SENT))
    measured = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], views=[view])
    metrics.set_meter_provider(measured)
    for instrumentor in (DjangoInstrumentor, CeleryInstrumentor):
        instrumentor().instrument()
    connection_created.connect(_trace_queries)

    @worker_process_shutdown.connect(weak=False)
    def send_the_rest(**_: object) -> None:
        traces.force_flush(3000)
        measured.force_flush(3000)


def discreet(span: "ReadableSpan") -> "ReadableSpan":
    """The span with the attributes of `SENT`, and of its exception the type."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Link, Status

    attributes = {name: found for name, found in (span.attributes or {}).items() if name in SENT}
    for event in span.events:
        if event.attributes and "exception.type" in event.attributes:
            attributes["error.type"] = event.attributes["exception.type"]
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=attributes,
        links=[Link(link.context) for link in span.links],
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _trace_queries(connection: Any, **_: object) -> None:
    connection.execute_wrappers.append(_trace_query)


def _trace_query(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """A span of a query inside another span: its verb and its database."""
    if not trace.get_current_span().is_recording():
        return execute(sql, params, many, context)
    verb = str(sql).split(maxsplit=1)[0][:20].upper()
    with trace.get_tracer("winnow.database").start_as_current_span(
        verb,
        kind=trace.SpanKind.CLIENT,
        attributes={"db.system.name": context["connection"].vendor, "db.operation.name": verb},
        record_exception=False,
        set_status_on_exception=False,
    ):
        return execute(sql, params, many, context)


def start_sentry(dsn: str) -> None:
    """Send errors to Sentry, from every process. `SENTRY_ENVIRONMENT` and `SENTRY_RELEASE` are read by its SDK."""
    try:
        import sentry_sdk
        from sentry_sdk.integrations.django import DjangoIntegration
    except ImportError as error:
        raise _missing("SENTRY_DSN", error) from None
    sentry_sdk.init(
        dsn=dsn,
        integrations=[DjangoIntegration(middleware_spans=False, signals_spans=False)],
        # Those that it finds by itself record prompts and answers.
        auto_enabling_integrations=False,
        send_default_pii=False,
        max_request_body_size="never",
        include_local_variables=False,
        max_breadcrumbs=0,
        auto_session_tracking=False,
        before_send=discreet_event,
    )


def discreet_event(event: "Event", hint: "Hint") -> "Event":
    """The event without anything that could quote data, and with the ids of the work in progress as tags."""
    given: dict[str, Any] = dict(event)
    kept: dict[str, Any] = {name: given[name] for name in OF_EVENT if name in given}
    if "transaction" in kept:  # a path where no address matches it
        kept["transaction"] = hide_invitation(kept["transaction"])
    kept["tags"] = {name: str(one) for name, one in current_ids().items()}
    if "method" in given.get("request", {}):
        kept["request"] = {"method": given["request"]["method"]}
    message = given.get("logentry", {}).get("message", "")
    if message and str(given.get("logger", "")).startswith(OURS):
        kept["logentry"] = {"message": message}
    values = given.get("exception", {}).get("values", [])
    if values:
        kept["exception"] = {"values": [_discreet_error(row) for row in values]}
        error = hint.get("exc_info", (None, None, None))[1]
        if isinstance(error, ABOUT_MACHINES):
            kept["exception"]["values"][-1]["value"] = hide_invitation(str(error))
    return kept  # type: ignore[return-value]  # the SDK's type is a TypedDict


def _discreet_error(row: dict[str, Any]) -> dict[str, Any]:
    frames = (row.get("stacktrace") or {}).get("frames", [])
    return {
        "type": row.get("type"),
        "module": row.get("module"),
        "stacktrace": {"frames": [{name: frame[name] for name in OF_FRAME if name in frame} for frame in frames]},
    }
