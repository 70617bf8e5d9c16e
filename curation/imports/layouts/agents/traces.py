"""Traces of OpenTelemetry, OpenInference and Phoenix, and of Langfuse: each trace is a session.

A call of a model repeats the messages of the calls before it, so an agent's last call has its whole conversation. The
other agents of a trace, and calls with messages of their own, are subagents.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from curation.imports.layouts.account import EMPTY, IGNORED, REPLACED, Account, DocumentReading, Fields
from curation.imports.layouts.clean import clean
from curation.imports.layouts.messages.calls import read_tools
from curation.imports.layouts.messages.metrics import add_facts, usage_of
from curation.imports.layouts.messages.read import read_messages
from curation.imports.layouts.session import (
    AgentSession,
    Json,
    SessionOrigin,
    SessionOutcome,
    SessionUsage,
    VerifierResult,
    agent_of,
)
from curation.imports.sources.rows import RowRefused
from judging.traces.generation import Generation, parsed
from judging.traces.read import TracedCall, is_trace, read_calls
from judging.traces.spans import Span, integer

NAME = "trace"
# The attributes of a model's call by what they become. Those of other names are metadata.
_BECOMES = {
    **dict.fromkeys(("gen_ai.input", "gen_ai.output", "gen_ai.prompt", "gen_ai.completion", "gen_ai.tool"), "steps"),
    **dict.fromkeys(("gen_ai.system_instructions", "llm.input_messages", "llm.output_messages", "llm.tools"), "steps"),
    **dict.fromkeys(("llm.request", "input", "output", "langfuse.observation"), "steps"),
    **dict.fromkeys(("mlflow.spanInputs", "mlflow.spanOutputs"), "steps"),
    **dict.fromkeys(("ai.prompt", "ai.response"), "steps"),
    "mlflow.chat": "steps, usage",
    "mlflow.llm": "agent",
    **dict.fromkeys(("gen_ai.usage", "llm.token_count", "llm.usage", "llm.cost"), "usage"),
    **dict.fromkeys(("gen_ai.request", "gen_ai.response", "gen_ai.agent", "llm.model_name"), "agent"),
}
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "mlflow.llm.model", "model")
_INPUT_TOKENS = (
    *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "mlflow.chat.tokenUsage.input_tokens",
)
_OUTPUT_TOKENS = (
    *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "mlflow.chat.tokenUsage.output_tokens",
)
_CACHED_TOKENS = ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read")
_COSTS = ("gen_ai.usage.cost", "llm.cost.total")
# Fields of a trace of Langfuse that have a place, and those of single spans.
_OF_TRACES = frozenset(("id", "object", "observations", "scores", "input", "output"))
_OF_SPANS = frozenset(
    ("name", "context", "trace_id", "traceId", "span_id", "spanId", "parent_id", "parentSpanId", "parent_span_id")
    + ("attributes", "events", "status", "status_code", "status_message", "start_time", "startTimeUnixNano")
    + ("start_time_unix_nano", "startTime", "span_kind", "kind", "object", "span_data")
)
# Names of attributes are read to this depth; deeper values are part of them.
_DEPTH = 2
fits = is_trace


def read(document: Mapping[str, Any]) -> DocumentReading:
    """Return a session for each trace in a document. Raises `RowRefused` if it has calls, and none is readable."""
    return read_rows([document])


def trace_of(row: Mapping[str, Any]) -> str:
    calls, _ = read_calls(row)
    return calls[0].span.trace if calls else ""


def read_rows(rows: Iterable[Mapping[str, Any]]) -> DocumentReading:
    """Return the same of documents that have parts of the same traces, such as a span in each line of a file."""
    calls: dict[str, list[TracedCall]] = {}
    reasons: list[str] = []
    about: dict[str, _About] = {}
    account = Account()
    for row in rows:
        found, unreadable = read_calls(row)
        reasons += unreadable
        for call in found:
            calls.setdefault(call.span.trace, []).append(call)
        if "observations" in row or row.get("object") == "trace":  # the latter of OpenAI's Agents SDK
            about[str(row.get("id", ""))] = _about(row, account)
        elif "attributes" in row:
            for name in row.keys() - _OF_SPANS:
                if row[name] not in EMPTY:
                    account.count(name, IGNORED)
    sessions = []
    for trace, spans in calls.items():
        try:
            session, fields = _session(trace, spans)
        except RowRefused as refused:
            reasons.append(str(refused))
            continue
        account.add(fields)
        if session:
            told = about.get(trace, _About({}, {}))
            verdict = replace(session.verdict, rewards=told.rewards)
            sessions.append(replace(session, verdict=verdict, metadata=session.metadata | told.metadata))
    if not sessions and reasons:
        raise RowRefused(reasons[0])
    if not sessions and any(call.choices == [] for spans in calls.values() for call in spans):
        raise RowRefused("the trace has no messages of its model calls: record their content (gen_ai.input.messages)")
    return DocumentReading(sessions, account, reasons)


class _About(NamedTuple):
    """The fields of a trace beside its observations. Scores without a number are metadata."""

    rewards: dict[str, float]
    metadata: Json


def _about(row: Mapping[str, Any], account: Account) -> _About:
    rewards: dict[str, float] = {}
    metadata = {f"trace.{name}": row[name] for name in row if name not in _OF_TRACES and row[name] not in EMPTY}
    for name in metadata:
        account.count(name.removeprefix("trace."), "metadata")
    given = row.get("scores")
    for score in given if isinstance(given, list) else ():
        value = score.get("value", score.get("stringValue")) if isinstance(score, dict) else None
        if isinstance(value, int | float):
            rewards[str(score.get("name"))] = float(value)
        elif isinstance(score, dict):
            metadata[f"scores.{score.get('name')}"] = score.get("stringValue") or value
    if given:
        account.count("scores", "rewards" if rewards else "metadata")
    return _About(rewards, metadata)


@dataclass(slots=True)
class _Conversation:
    """The calls of one agent that continue each other, each with its answer. `last` has the messages of all."""

    agent: str
    calls: list[tuple[TracedCall, Generation]]
    last: Generation

    def continues(self, agent: str, generation: Generation) -> bool:
        before = self.last.messages[:-1]
        return agent == self.agent and generation.messages[: len(before)] == before


def _session(trace: str, calls: Sequence[TracedCall]) -> tuple[AgentSession | None, Account]:
    """Return the session of a trace, or None without a call of a model, and the account of its attributes."""
    spans = {call.span.id: call.span for call in calls if call.span.id}
    conversations: list[_Conversation] = []
    for call in sorted(calls, key=lambda call: (len(call.span.start), call.span.start)):
        if not call.choices:
            continue
        agent, generation = _agent_of(call.span, spans), call.choices[0]
        known = next((one for one in reversed(conversations) if one.continues(agent, generation)), None)
        if known is None:
            conversations.append(_Conversation(agent, [(call, generation)], generation))
        else:
            known.calls.append((call, generation))
            known.last = generation
    fields = Fields({})
    for call in calls:
        _account(call, fields)
    if not conversations:
        return None, fields.account()
    # The outermost agent is the one whose first call is the earliest among those without an agent above.
    main = min(conversations, key=lambda one: (_depth(one.calls[0][0].span, spans), -len(one.last.messages)))
    inner = [_one(one, spans, fields) for one in conversations if one is not main]
    session = _one(main, spans, fields)
    error = next((span.error for span in spans.values() if not span.parent and span.error), "")
    verdict = VerifierResult(SessionOutcome.ERROR if error else SessionOutcome.UNKNOWN, exception=error)
    origin = SessionOrigin(id=trace, group=trace)
    return replace(session, origin=origin, verdict=verdict, subagents=inner), fields.account()


def _one(conversation: _Conversation, spans: Mapping[str, Span], fields: Fields) -> AgentSession:
    last, replaced = clean({"messages": conversation.last.messages, "tools": conversation.last.tools}, "")
    for place in replaced:
        fields.became(place, REPLACED)
    read = read_messages(last["messages"], "messages", fields)
    tools = read_tools(last["tools"], "tools")
    for call, generation in conversation.calls:
        position = read.positions[generation.turns[0]]
        if position >= 0:
            add_facts(read.steps[position], _facts(call.span))
    attributes = [call.span.attributes for call, _ in conversation.calls]
    models = [model for one in attributes if (model := _first(one, *_MODELS))]
    span = spans.get(conversation.agent)
    name = (span and (_first(span.attributes, "gen_ai.agent.name", "agent.name") or span.name)) or NAME
    return AgentSession(
        layout=NAME,
        steps=read.steps,
        agent=agent_of(str(name), model=str(models[-1]) if models else "", tools=tools),
        learned=read.learned,
        usage=SessionUsage(
            _total(attributes, *_INPUT_TOKENS),
            _total(attributes, *_OUTPUT_TOKENS),
            _total(attributes, *_CACHED_TOKENS),
            _cost(attributes),
            usage_of(read.steps).seconds,
        ),
        metadata=clean(_metadata(attributes), "")[0],
    )


def _facts(span: Span) -> Json:
    """Return the time, model, tokens and price of a call, as a message has them."""
    given = span.attributes
    names = {"input_tokens": _INPUT_TOKENS, "output_tokens": _OUTPUT_TOKENS, "cached_tokens": _CACHED_TOKENS}
    return {
        "timestamp": int(span.start) if span.start.isdecimal() else span.start,
        "model": _first(given, *_MODELS),
        "usage": {name: integer(_first(given, *each)) for name, each in names.items()},
        "cost": _cost([given]),
    }


def _agent_of(span: Span, spans: Mapping[str, Span]) -> str:
    """Return the id of the nearest span around a call that is an agent, or an empty text."""
    return next((one.id for one in _around(span, spans) if _is_agent(one)), "")


def _depth(span: Span, spans: Mapping[str, Span]) -> int:
    return sum(_is_agent(one) for one in _around(span, spans))


def _around(span: Span, spans: Mapping[str, Span]) -> Iterator[Span]:
    """Yield the spans around one, the nearest first. Spans that contain each other are yielded once."""
    seen = {span.id}
    while (outer := spans.get(span.parent)) is not None and outer.id not in seen:
        seen.add(outer.id)
        yield outer
        span = outer


def _is_agent(span: Span) -> bool:
    kinds = ("openinference.span.kind", "gen_ai.operation.name", "langfuse.observation.type", "mlflow.spanType")
    return any(str(_first(span.attributes, name)).lower() in ("agent", "invoke_agent") for name in kinds)


def _first(attributes: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        found: Any = attributes
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
            found = parsed(found) if name.startswith("mlflow.") else found
        if isinstance(found, Mapping):
            found = found.get("")
        if found not in (None, ""):
            return found
    return None


def _total(attributes: Sequence[Mapping[str, Any]], *names: str) -> int | None:
    each = [number for one in attributes if (number := integer(_first(one, *names))) is not None]
    return sum(each) if each else None


def _cost(attributes: Sequence[Mapping[str, Any]]) -> float | None:
    found = [_first(one, *_COSTS) for one in attributes]
    each = [float(cost) for cost in found if isinstance(cost, int | float)]
    return sum(each) if each else None


def _named(attributes: Mapping[str, Any], path: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    for name, value in attributes.items():
        if isinstance(value, Mapping) and depth < _DEPTH and f"{path}{name}" not in _BECOMES:
            yield from _named(value, f"{path}{name}.", depth + 1)
        else:
            yield f"{path}{name}", value


def _metadata(attributes: Sequence[Mapping[str, Any]]) -> Json:
    """Return the attributes that have no other place, of the first call that has each."""
    found: Json = {}
    for one in attributes:
        for name, value in _named(one):
            if name not in _BECOMES:
                found.setdefault(name, parsed(value) if "mlflow" in one else value)
    return found


def _account(call: TracedCall, fields: Fields) -> None:
    if call.choices is None:
        fields.became("spans", "ignored: they call no model")
        return
    for name, _ in _named(call.span.attributes):
        fields.became(
            name, _BECOMES.get(name, "metadata") if call.choices else "ignored: its messages were not recorded"
        )
    if len(call.choices) > 1:
        fields.became("choices", "ignored: the first answer of a call is read")
