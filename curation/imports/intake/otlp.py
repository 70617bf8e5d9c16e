"""Read requests of OTLP/HTTP exporters, as protobuf or JSON, into spans and log records of model calls."""

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import cast

import orjson

from curation.projects.settings.document import Intake
from curation.web.problems import Invalid, TooLarge
from judging.traces.generation import Json
from judging.traces.read import is_call_record, is_model_call
from judging.traces.spans import record_rows, service_of, span_rows

PROTOBUF, JSON = "application/x-protobuf", "application/json"
IDS = ("traceId", "spanId", "parentSpanId")
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Signal:
    """What an exporter sends. `message` is the name of its request, `field` the list in it, `rows` yields its rows
    after their resource, and `wanted` says which rows are of a model call."""

    module: str
    message: str
    field: str
    rows: Callable[[Json], Iterator[tuple[Json, Json]]]
    wanted: Callable[[Json], bool]


_COLLECTOR = "opentelemetry.proto.collector"
TRACES = Signal(
    f"{_COLLECTOR}.trace.v1.trace_service_pb2", "ExportTraceServiceRequest", "resourceSpans", span_rows, is_model_call
)
LOGS = Signal(
    f"{_COLLECTOR}.logs.v1.logs_service_pb2", "ExportLogsServiceRequest", "resourceLogs", record_rows, is_call_record
)


def read_request(signal: Signal, body: bytes, *, content_type: str, encoding: str) -> Json:
    """Return the document of an export request with ids in hex. Raises `Invalid` or `TooLarge`, with the reason."""
    if encoding not in ("", "identity", "gzip"):
        raise Invalid(f"The body is encoded as {encoding[:40]!r}. Send it as gzip, or as it is.", code="encoding")
    if encoding == "gzip":
        body = _unpacked(body)
    if content_type == PROTOBUF:
        return _of_protobuf(signal, body)
    if content_type != JSON:
        raise Invalid(f"The body is {content_type[:80]!r}. Send {PROTOBUF} or {JSON}.", code="content_type")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"The body is not JSON: {error}.", code="not_otlp") from None
    if not isinstance(document, dict) or not isinstance(document.get(signal.field, []), list):
        raise Invalid(f"The body is not an {signal.message}: `{signal.field}` is a list.", code="not_otlp")
    return document


def wanted_rows(signal: Signal, document: Json, rules: Intake) -> Iterator[Json]:
    """Yield each span or log record of a model call that the project's sampling rules take.

    A trace is taken or left as a whole: its id decides, so all its requests agree, on any server.
    """
    for resource, row in signal.rows(document):
        service = service_of(resource)
        if rules.services and service not in rules.services:
            continue
        if is_sampled(str(row.get("traceId", "")), rules.share) and signal.wanted(row):
            yield row


def is_sampled(trace: str, share: float) -> bool:
    digest = hashlib.blake2b(trace.lower().encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _of_protobuf(signal: Signal, body: bytes) -> Json:
    # Only what exporters send needs protobuf.
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError

    request = getattr(import_module(signal.module), signal.message)
    try:
        document: dict[str, object] = MessageToDict(request.FromString(body))
    except DecodeError as error:
        raise Invalid(f"The body is not an {signal.message}: {error}.", code="not_otlp") from None
    for _, row in signal.rows(document):
        # OTLP writes ids in JSON as hex, protobuf's own form is Base64.
        ids = {name: base64.b64decode(str(row[name])).hex() for name in IDS if name in row}
        cast(dict[str, object], row).update(ids)
    return document


def _unpacked(body: bytes) -> bytes:
    stream = zlib.decompressobj(31)
    try:
        unpacked = stream.decompress(body, MAX_BYTES)
    except zlib.error as error:
        raise Invalid(f"The body is not gzip: {error}.", code="encoding") from None
    if stream.unconsumed_tail:
        raise TooLarge(f"Unpacked, the body has more than {MAX_BYTES // 1024 // 1024} MB. Send smaller batches.")
    if not stream.eof:
        raise Invalid("The gzip body is cut off.", code="encoding")
    return unpacked
