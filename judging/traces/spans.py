"""Spans of OpenTelemetry as JSON: OTLP documents, single spans as SDKs and Phoenix write them, and log records that
belong to a span."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from judging.traces.generation import Json, Unreadable, listed, refuse_deep

DETAILS = "gen_ai.client.inference.operation.details"
_RECORD_IDS = (("traceId", "trace_id"), ("spanId", "span_id"))
# A trace of OpenAI's Agents SDK, and a span of one.
_OF_AGENTS = ("trace", "trace.span")
_OF_DATA = frozenset(("type", "name", "input", "output", "model", "usage"))
# Digits of a number in a name that counts entries of a list.
_INDEX_DIGITS = 9
_OTLP = frozenset(("resourceSpans", "resource_spans", "resourceLogs", "resource_logs"))
_PREFIXES = ("attributes.llm.", "attributes.gen_ai.", "attributes.openinference.")


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event of a span. `attributes` also has the fields of a log record's body."""

    name: str
    attributes: dict[str, object]


@dataclass(frozen=True, slots=True)
class Span:
    """Attributes are nested by the dots in their names, with lists where the parts are numbers.

    `start` orders the spans of a document: nanoseconds, or a time as text. `error` is the message of a failed status.
    """

    name: str
    trace: str
    attributes: dict[str, object]
    events: list[SpanEvent] = field(default_factory=list)
    id: str = ""
    parent: str = ""
    start: str = ""
    error: str = ""


def is_spans(row: Json) -> bool:
    """Whether a document has spans, or is one. Every row of an import is asked."""
    row = _without_info(row)
    if row.get("object") in _OF_AGENTS or not _OTLP.isdisjoint(row) or ("attributes" in row and _is_span(row)):
        return True
    lists = [row[key] for key in ("data", "spans") if key in row]
    return any(map(_is_span, map(_first, lists))) or any(key.startswith(_PREFIXES) for key in row)


def spans_of(row: Json) -> tuple[list[Span], list[str]]:
    """Return the spans of a document, and why others cannot be read. Log records without their span are spans of events
    alone."""
    row = _without_info(row)
    rows = list(span_rows(row))
    rows += [(None, span) for key in ("data", "spans") for span in _entries(row, key) if _is_span(span)]
    if row.get("object") == _OF_AGENTS[1]:
        rows.append((None, _of_agents(row)))
    elif _is_span(row) or any(key.startswith("attributes.") for key in row):
        rows.append((None, row))
    found: list[Span] = []
    reasons: list[str] = []
    resources: dict[int, Json] = {}
    for resource, one in rows:
        try:
            if id(resource) not in resources:
                resources[id(resource)] = _of_resource(resource)
            found.append(span_of(one, resources[id(resource)]))
        except Unreadable as unreadable:
            reasons.append(str(unreadable))
    logged, others = _logged(row)
    return [*found, *logged], [*reasons, *others]


def _without_info(row: Json) -> Json:
    """Return the spans of a trace of MLflow, which has them beside its `info`."""
    return data if "data" in row and isinstance(data := row["data"], dict) and "spans" in data else row


def _of_agents(row: Json) -> Json:
    """Return a span of OpenAI's Agents SDK with the attributes of OpenTelemetry."""
    data = row.get("span_data")
    given: Json = data if isinstance(data, dict) else {}
    kind, error = given.get("type"), row.get("error")
    operation = {"generation": "chat", "response": "chat", "agent": "invoke_agent"}.get(str(kind), "execute_tool")
    usage = given.get("usage")
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.agent.name": given.get("name") if kind == "agent" else None,
        "gen_ai.input.messages": given.get("input") if operation == "chat" else None,
        "gen_ai.output.messages": given.get("output") if operation == "chat" else None,
        "gen_ai.request.model": given.get("model"),
        **{name: value for name, value in given.items() if name not in _OF_DATA},
        **({f"gen_ai.usage.{name}": value for name, value in usage.items()} if isinstance(usage, dict) else {}),
    }
    return {
        **{name: row.get(name) for name in ("trace_id", "parent_id")},
        **{"span_id": row.get("id"), "name": str(given.get("name") or kind), "start_time": row.get("started_at")},
        "attributes": {name: value for name, value in attributes.items() if value is not None},
        "status": {"code": "ERROR", "message": str(error.get("message"))} if isinstance(error, dict) else {},
    }


def span_rows(row: Json) -> Iterator[tuple[object, object]]:
    """Yield each entry of an OTLP document's lists of spans, valid or not, after its resource."""
    for entry in _entries(row, "resourceSpans", "resource_spans"):
        for scope in _entries(entry, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            for span in _entries(scope, "spans"):
                yield _resource(entry), span


def service_of(resource: object) -> str:
    """Return the name of the service that a resource describes, or ''. Raises `Unreadable`."""
    refuse_deep(resource)
    given = resource if isinstance(resource, dict) else {}
    return str(_attributes(given.get("attributes")).get("service.name", ""))


def _is_span(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("attributes"), (list, dict)):
        return False
    context = value.get("context")
    if isinstance(context, dict) and any(key in context for key in ("trace_id", "traceId")):
        return True
    # Calls of Weave have a trace and attributes too, but are no spans.
    return any(key in value for key in ("traceId", "trace_id")) and "op_name" not in value


def trace_of(row: Json) -> str:
    context = row.get("context")
    named: Json = context if isinstance(context, dict) else {}
    trace = row.get("traceId") or row.get("trace_id") or named.get("trace_id") or named.get("traceId")
    return str(trace or row.get("context.trace_id") or "")


def _of_resource(given: object) -> Json:
    """Return the attributes of a resource under its name, as its spans have them. Raises `Unreadable`."""
    refuse_deep(given)
    attributes = nested(_attributes(given.get("attributes"))) if isinstance(given, dict) else {}
    return {"resource": attributes} if attributes else {}


def span_of(given: object, more: Json | None = None) -> Span:
    """Return one span of a document, with more attributes than its own. Raises `Unreadable`."""
    row = _readable(given)
    attributes = {key.removeprefix("attributes."): value for key, value in row.items() if key.startswith("attributes.")}
    attributes |= _attributes(row.get("attributes"))
    events = [
        SpanEvent(str(event.get("name", "")), nested(_attributes(event.get("attributes"))))
        for event in listed(row.get("events"))
        if isinstance(event, dict)
    ]
    return Span(
        str(row.get("name", "")),
        trace_of(row),
        {**(more or {}), **nested(attributes)},
        events,
        id=_text(row, "spanId", "span_id", "context.span_id") or _text(row.get("context"), "span_id", "spanId"),
        parent=_text(row, "parentSpanId", "parent_span_id", "parent_id"),
        start=_text(row, "startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time"),
        error=_error(row),
    )


def _error(row: Json) -> str:
    status = row.get("status")
    given: Json = status if isinstance(status, dict) else row
    code = str(given.get("code", given.get("status_code", "")))
    if code.upper() not in ("2", "ERROR", "STATUS_CODE_ERROR"):
        return ""
    return _text(given, "message", "description", "status_message") or "error"


def _text(row: object, *names: str) -> str:
    given: Json = row if isinstance(row, dict) else {}
    return next((str(given[name]) for name in names if given.get(name)), "")


def record_rows(row: Json) -> Iterator[tuple[object, object]]:
    """Yield each entry of an OTLP document's lists of log records, valid or not, after its resource."""
    for entry in _entries(row, "resourceLogs", "resource_logs"):
        for scope in _entries(entry, "scopeLogs", "scope_logs"):
            for record in _entries(scope, "logRecords", "log_records"):
                yield _resource(entry), record


def event_of(given: object) -> SpanEvent:
    """Return the event that a log record is. Older SDKs have its name as an attribute. Raises `Unreadable`."""
    record = _readable(given)
    attributes = _attributes(record.get("attributes"))
    name = record.get("eventName") or record.get("event_name") or attributes.get("event.name", "")
    body = _value(record.get("body"))
    return SpanEvent(str(name), nested({**attributes, **(body if isinstance(body, dict) else {})}))


def time_of(record: Json) -> int:
    """Return when a log record was made, in nanoseconds; 0 if it does not say."""
    return integer(record.get("observedTimeUnixNano")) or integer(record.get("timeUnixNano")) or 0


def call_of(record: Json) -> tuple[str, str] | None:
    """Return the ids of the trace and the span whose messages the record has a part of, or None if it has no span or
    is about a whole call."""
    trace, span = _ids(record)
    return (trace, span) if span and event_of(record).name != DETAILS else None


def _ids(record: Json) -> tuple[str, str]:
    trace, span = (str(record.get(name) or record.get(other) or "") for name, other in _RECORD_IDS)
    return trace, span


def _logged(row: Json) -> tuple[list[Span], list[str]]:
    """Return a span for the log records with the same trace and span id, and one for each record of a whole call; and
    why records cannot be read. A call with such a record has not all its messages, and is left out.

    Messages without a span could be of any call: each is a span of its own, which is no whole call.
    """
    spans: list[Span] = []
    calls: dict[tuple[str, str], list[SpanEvent]] = {}
    broken: set[tuple[str, str]] = set()
    reasons: list[str] = []
    for _, given in record_rows(row):
        record: Json = given if isinstance(given, dict) else {}
        trace, span = _ids(record)
        try:
            event = event_of(given)
        except Unreadable as unreadable:
            reasons.append(str(unreadable))
            broken.add((trace, span))
            continue
        if span and event.name != DETAILS:
            calls.setdefault((trace, span), []).append(event)
        else:
            spans.append(Span("log record", trace, {}, [event]))
    spans += [Span("log records", call[0], {}, events) for call, events in calls.items() if call not in broken]
    return spans, reasons


def nested(attributes: Mapping[str, object]) -> dict[str, object]:
    """Return the attributes as a tree. Where a name is also the beginning of others, its own value is under ""."""
    tree: dict[str, object] = {}
    for name, value in attributes.items():
        *path, last = name.split(".")
        branch = tree
        for part in path:
            inner = branch.get(part)
            if not isinstance(inner, dict):
                inner = {} if inner is None else {"": inner}
                branch[part] = inner
            branch = inner
        old = branch.get(last)
        deep = _nested_value(value)
        if isinstance(old, dict) and not isinstance(deep, dict):
            old[""] = deep
        else:
            branch[last] = {**old, **deep} if isinstance(old, dict) and isinstance(deep, dict) else deep
    return {key: _numbered(value) for key, value in tree.items()}


def _nested_value(value: object) -> object:
    if isinstance(value, dict):
        return nested(value)
    return [_nested_value(part) for part in value] if isinstance(value, list) else value


def _numbered(value: object) -> object:
    """Return a list for an object whose keys are numbers."""
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() and len(key) <= _INDEX_DIGITS for key in value):
        return [_numbered(value[key]) for key in sorted(value, key=int)]
    return {key: _numbered(inner) for key, inner in value.items()}


def _attributes(given: object) -> dict[str, object]:
    if isinstance(given, dict):
        return dict(given)
    pairs = given if isinstance(given, list) else []
    return {str(pair["key"]): _value(pair.get("value")) for pair in pairs if isinstance(pair, dict) and "key" in pair}


def _value(given: object) -> object:
    """Return the value of OTLP's `AnyValue`."""
    if not isinstance(given, dict):
        return given
    for kind, value in given.items():
        kind = kind.replace("_v", "V")
        if kind == "arrayValue":
            return [_value(part) for part in listed(value.get("values"))] if isinstance(value, dict) else []
        if kind == "kvlistValue":
            return _attributes(value.get("values")) if isinstance(value, dict) else {}
        if kind == "intValue":
            return integer(value)
        if kind in ("stringValue", "doubleValue", "boolValue", "bytesValue"):
            return value
    return None


def integer(value: object) -> int | None:
    """Return a number that JSON has as text, or None if it is none."""
    try:
        return int(value) if isinstance(value, int | str) else None
    except ValueError:
        return None


def _readable(given: object) -> Json:
    if not isinstance(given, dict):
        raise Unreadable("it is no object")
    refuse_deep(given)
    if not isinstance(given.get("attributes"), list | dict | None):
        raise Unreadable("its attributes are no list")
    return given


def _resource(entry: object) -> object:
    return entry.get("resource") if isinstance(entry, dict) else None


def _entries(row: object, *names: str) -> list[object]:
    """Return the entries of the first list present. If its value is no list, the only entry is None."""
    if not isinstance(row, dict):
        return [None]
    found: object = next((row[name] for name in names if row.get(name) is not None), [])
    return found if isinstance(found, list) else [None]


def _first(value: object) -> object:
    return value[0] if isinstance(value, list) and value else None
