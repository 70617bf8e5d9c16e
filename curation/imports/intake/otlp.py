"""Read requests of OTLP/HTTP exporters, as protobuf or JSON, into one row for each span that calls a model."""

import base64
import hashlib
import zlib
from collections.abc import Iterator, Mapping
from typing import cast

import orjson

from curation.projects.settings.document import Intake
from curation.web.problems import Invalid, TooLarge
from judging.traces.read import is_model_call
from judging.traces.spans import service_of, span_rows

PROTOBUF, JSON = "application/x-protobuf", "application/json"
IDS = ("traceId", "spanId", "parentSpanId")
MAX_BYTES = 64 * 1024 * 1024


def read_request(body: bytes, *, content_type: str, encoding: str) -> Mapping[str, object]:
    """Return the document of an export request with ids in hex. Raises `Invalid` or `TooLarge`, with the reason."""
    if encoding not in ("", "identity", "gzip"):
        raise Invalid(f"The body is encoded as {encoding[:40]!r}. Send it as gzip, or as it is.", code="encoding")
    if encoding == "gzip":
        body = _unpacked(body)
    if content_type == PROTOBUF:
        return _of_protobuf(body)
    if content_type != JSON:
        raise Invalid(f"The body is {content_type[:80]!r}. Send {PROTOBUF} or {JSON}.", code="content_type")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"The body is not JSON: {error}.", code="not_otlp") from None
    if not isinstance(document, dict) or not isinstance(document.get("resourceSpans", []), list):
        raise Invalid("The body is not an ExportTraceServiceRequest: `resourceSpans` is a list.", code="not_otlp")
    return document


def wanted_rows(document: Mapping[str, object], rules: Intake) -> Iterator[Mapping[str, object]]:
    """Yield each span that calls a model and that the project's sampling rules take, as a document of its own.

    A trace is taken or left as a whole: its id decides, so all its requests agree, on any server.
    """
    for resource, span in span_rows(document):
        service = service_of(resource)
        if rules.services and service not in rules.services:
            continue
        if _is_sampled(str(span.get("traceId", "")), rules.share) and is_model_call(span):
            yield span


def _is_sampled(trace: str, share: float) -> bool:
    digest = hashlib.blake2b(trace.lower().encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _of_protobuf(body: bytes) -> Mapping[str, object]:
    # Only what exporters send needs protobuf.
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        document: dict[str, object] = MessageToDict(ExportTraceServiceRequest.FromString(body))
    except DecodeError as error:
        raise Invalid(f"The body is not an ExportTraceServiceRequest: {error}.", code="not_otlp") from None
    for _, span in span_rows(document):
        # OTLP writes ids in JSON as hex, protobuf's own form is Base64.
        ids = {name: base64.b64decode(str(span[name])).hex() for name in IDS if name in span}
        cast(dict[str, object], span).update(ids)
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
