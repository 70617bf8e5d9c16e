"""Read requests of OTLP/HTTP exporters, as protobuf or JSON, into spans and log records of model calls."""

import base64
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import orjson

from curation.projects.settings.document import Intake
from curation.web.http.responses import PROTOBUF
from curation.web.problems import Invalid, TooLarge
from curation.web.text.figures import counted
from curation.web.text.storable import refuse_many_values
from judging.traces.generation import Json, Unreadable
from judging.traces.read import is_call_record, is_model_call
from judging.traces.spans import record_rows, service_of, span_rows, trace_of

JSON = "application/json"
IDS = ("traceId", "spanId", "parentSpanId")
MAX_BYTES = 64 * 1024 * 1024
MOST_MESSAGES = 500_000
# Wire types of protobuf: a length and so many bytes, or a number of 8 or 4 bytes.
LENGTH, FIXED = 2, {1: 8, 5: 4}
# Reasons that an answer names.
MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal of an exporter. `message` is the prefix of the protobuf request and response names, `field` the list in
    the request, `noun` its elements, `rejected` the response's count of unreadable ones. `rows` yields the elements
    after their resource; `wanted` accepts those of a model call."""

    module: str
    message: str
    field: str
    noun: str
    rejected: str
    rows: Callable[[Json], Iterator[tuple[object, object]]]
    wanted: Callable[[object], bool]


_COLLECTOR = "opentelemetry.proto.collector"
TRACES = Signal(
    f"{_COLLECTOR}.trace.v1.trace_service_pb2",
    "ExportTraceService",
    "resourceSpans",
    "span",
    "rejectedSpans",
    span_rows,
    is_model_call,
)
LOGS = Signal(
    f"{_COLLECTOR}.logs.v1.logs_service_pb2",
    "ExportLogsService",
    "resourceLogs",
    "log record",
    "rejectedLogRecords",
    record_rows,
    is_call_record,
)


def read_request(signal: Signal, body: bytes, *, content_type: str, encoding: str) -> tuple[Json, list[str]]:
    """Return the document of an export request with ids in hex, and why rows are not in it. Raises `Invalid` or
    `TooLarge`, with the reason."""
    if encoding in UNPACKED:
        body = _unpacked(body, encoding)
    elif encoding not in ("", "identity"):
        named = ", ".join(UNPACKED)
        raise Invalid(f"The body is encoded as {encoding[:40]!r}. Send it as {named}, or as it is.", code="encoding")
    if content_type == PROTOBUF:
        return _of_protobuf(signal, body)
    if content_type != JSON:
        raise Invalid(f"The body is {content_type[:80]!r}. Send {PROTOBUF} or {JSON}.", code="content_type")
    refuse_many_values(body)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"The body is not JSON: {error}.", code="not_otlp") from None
    if not isinstance(document, dict) or not isinstance(document.get(signal.field, []), list):
        raise Invalid(f"The body is not an {signal.message}Request: `{signal.field}` is a list.", code="not_otlp")
    return document, []


def wanted_rows(signal: Signal, document: Json, rules: Intake) -> tuple[list[Json], list[str]]:
    """Return the spans or log records of model calls that the project's sampling rules take, and why others cannot be
    read."""
    wanted: list[Json] = []
    reasons: list[str] = []
    for resource, row in signal.rows(document):
        try:
            if rules.services and service_of(resource) not in rules.services:
                continue
            if signal.wanted(row) and is_sampled(cast(Json, row), rules.share):
                wanted.append(cast(Json, row))
        except Unreadable as unreadable:
            reasons.append(str(unreadable))
    return wanted, reasons


def is_sampled(row: Json, share: float) -> bool:
    """Whether a share of the traces has this span, log record or observation.

    A trace is taken or left as a whole: its id decides, so all its requests agree, on any server. Rows without a trace
    are taken or left alone.
    """
    trace = trace_of(row)
    whole = trace.lower().encode("utf-8", "surrogatepass") if trace else orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.blake2b(whole, digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def answer_of(signal: Signal, reasons: list[str], *, content_type: str) -> bytes:
    """Return OTLP's answer in the encoding of the request: empty, or with `reasons` why rows were rejected."""
    count = len(reasons)
    partial: dict[str, object] = {}
    if count:
        named = "; ".join(list(dict.fromkeys(reasons))[:MOST_REASONS])
        # OTLP writes 64-bit numbers in JSON as text.
        said = f"{counted(count, signal.noun)} cannot be read: {named}."
        partial = {signal.rejected: str(count), "errorMessage": said}
    answer = {"partialSuccess": partial} if partial else {}
    if content_type == JSON:
        return orjson.dumps(answer)
    from google.protobuf.json_format import ParseDict

    message = getattr(import_module(signal.module), f"{signal.message}Response")
    written: bytes = ParseDict(answer, message()).SerializeToString()
    return written


def _of_protobuf(signal: Signal, body: bytes) -> tuple[Json, list[str]]:
    # Only requests of exporters need protobuf.
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError

    request = getattr(import_module(signal.module), f"{signal.message}Request")()
    if _has_many_messages(request.DESCRIPTOR, body):
        raise TooLarge(f"The request has more than {MOST_MESSAGES:,} messages. Send smaller batches.")
    reasons: list[str] = []
    try:
        try:
            request.ParseFromString(body)
        except DecodeError:
            request.Clear()
            reasons = _read_rows(request, body)
    except DecodeError as error:
        raise Invalid(f"The body is not an {signal.message}Request: {error}.", code="not_otlp") from None
    document: dict[str, object] = MessageToDict(request)
    for _, row in signal.rows(document):
        if isinstance(row, dict):
            # OTLP writes ids in JSON as hex, protobuf's own form is Base64.
            row.update({name: base64.b64decode(str(row[name])).hex() for name in IDS if name in row})
    return document, reasons


def _has_many_messages(descriptor: Any, body: bytes) -> bool:
    """Whether a request has more nested messages than `MOST_MESSAGES`: one of two bytes becomes hundreds.

    Nothing is parsed; invalid protobuf is left to the parser.
    """
    if len(body) <= 2 * MOST_MESSAGES:
        return False
    found = 0
    waiting = [(descriptor, 0, len(body))]
    while waiting:
        kind, at, end = waiting.pop()
        while at < end:
            key, at = _varint(body, at, end)
            if key & 7 == 0:
                _, at = _varint(body, at, end)
            elif key & 7 in FIXED:
                at += FIXED[key & 7]
            elif key & 7 == LENGTH:
                size, at = _varint(body, at, end)
                field = kind.fields_by_number.get(key >> 3)
                if field is not None and field.message_type is not None:
                    found += 1
                    waiting.append((field.message_type, at, min(at + size, end)))
                at += size
            else:
                break  # a group, or no protobuf
            if found > MOST_MESSAGES:
                return True
    return False


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number at a place, and the place after it. One that does not end in time is 0, at the end."""
    value = shift = 0
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, end


def _read_rows(request: Any, body: bytes) -> list[str]:
    """Read a request that the parser refuses as a whole row by row, and return why it refuses rows.

    Of resources only attributes are read, of scopes nothing: the rest is not used. Traces and logs have the same
    numbers of fields. Raises `DecodeError` if the request has no rows in resources and scopes.
    """
    reasons = []
    for resource_rows in _parts(body, 1):
        entry = _list(request, 1).add()
        for resource in _parts(resource_rows, 1):
            for attribute in _parts(resource, 1):
                _add(entry.resource.attributes, attribute)
        for scope in _parts(resource_rows, 2):
            rows = _list(_list(entry, 2).add(), 2)
            reasons += [reason for row in _parts(scope, 2) if (reason := _add(rows, row))]
    return reasons


def _parts(message: bytes, number: int) -> list[bytes]:
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

    fields = UnknownFieldSet(Empty.FromString(message))
    return [field.data for field in fields if field.field_number == number and isinstance(field.data, bytes)]


def _list(message: Any, number: int) -> Any:
    return getattr(message, message.DESCRIPTOR.fields_by_number[number].name)


def _add(messages: Any, body: bytes) -> str:
    from google.protobuf.message import DecodeError

    try:
        messages.add().ParseFromString(body)
    except DecodeError as error:
        del messages[-1]
        return f"the protobuf parser refuses it ({str(error).rpartition(': ')[2]})"
    return ""


def _unpacked(body: bytes, encoding: str) -> bytes:
    try:
        unpacked = UNPACKED[encoding](body)
    except EOFError:
        raise Invalid(f"The {encoding} body is cut off.", code="encoding") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise Invalid(f"The body is not {encoding}: {error}.", code="encoding") from None
    if len(unpacked) > MAX_BYTES:
        raise TooLarge(f"Unpacked, the body has more than {MAX_BYTES // 1024 // 1024} MB. Send smaller batches.")
    return unpacked


def _of_gzip(body: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as stream:
        return stream.read(MAX_BYTES + 1)


def _of_deflate(body: bytes) -> bytes:
    stream = zlib.decompressobj()
    unpacked = stream.decompress(body, MAX_BYTES + 1)
    if not stream.eof and len(unpacked) <= MAX_BYTES:
        raise EOFError
    return unpacked


# The encodings of exporters. Each returns a byte more than allowed where the body has more.
UNPACKED = {"gzip": _of_gzip, "deflate": _of_deflate}
