"""Logs of Codex: rollouts, whose lines have items of the Responses API, and the events of `codex exec --json`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.messages.calls import read_tools
from curation.imports.layouts.messages.documents import MessageAndFacts, read_with_facts
from curation.imports.layouts.messages.metrics import metrics_of, model_of, usage_of
from curation.imports.layouts.session import AgentSession, Json, SessionOrigin, VerifierResult, agent_of
from curation.imports.sources.rows import RowRefused

NAME = "Codex log"
AGENT = "codex"
_PAYLOADS = frozenset(("session_meta", "response_item", "turn_context", "event_msg", "compacted"))
_NO_TURN = "ignored: it is no turn"
_REPEATED = "ignored: an item has it"
_TOLD = "ignored: the model does not see it"
_OF_META = {"id": "id", "base_instructions": "steps", "instructions": "steps", "dynamic_tools": "tools"} | {
    "cli_version": "agent"
}
# Items of `codex exec` that call a tool, by what of them the call and the result are.
_EXECUTED = {
    "command_execution": (("command",), ("aggregated_output", "output")),
    "mcp_tool_call": (("server", "tool", "arguments"), ("result", "error")),
    "file_change": (("changes",), ("status",)),
    "web_search": (("query",), ()),
    "todo_list": (("items",), ()),
}
# Fields of items that are read of several kinds, or say that the item ended.
_OF_ITEM = frozenset(("id", "type", "item_type", "text", "status", "aggregated_output", "output", "result", "error"))
# The items of the oldest rollouts, which are lines themselves.
_OLDEST = frozenset(
    ("message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call")
    + ("custom_tool_call_output",)
)
# The service alone reads these fields, or the program adds them.
_UNREAD = frozenset(("encrypted_content", "internal_chat_message_metadata_passthrough", "metadata", "phase", "status"))


def is_line(line: Mapping[str, Any]) -> bool:
    """Whether a line is one of such a log. The first line of the oldest rollouts has no type."""
    kind = line.get("type")
    if kind == "thread.started":
        return isinstance(line.get("thread_id"), str)
    if kind is None:
        return {"id", "timestamp", "instructions"} <= line.keys()
    return str(kind) in _PAYLOADS and isinstance(line.get("payload"), dict)


def read(lines: Iterable[Json]) -> DocumentReading:
    """Return the session of a log. Raises `RowRefused`."""
    log = _Log(Fields({}))
    for line in lines:
        log.add(line)
    if not log.items:
        raise RowRefused("the log has no items of a user or an assistant")
    return DocumentReading([log.session()], log.fields.account())


@dataclass(slots=True)
class _Log:
    """`items` are messages and items of the Responses API, each with what its line says of it."""

    fields: Fields
    items: list[MessageAndFacts] = field(default_factory=list)
    about: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    totals: Json = field(default_factory=dict)
    model: str = ""
    exception: str = ""

    def add(self, line: Json) -> None:
        kind, payload = str(line.get("type", "session_meta")), line.get("payload")
        if not isinstance(payload, dict):  # of `codex exec`, and of the oldest rollouts
            payload = line
        name = f"{kind}/{payload['type']}" if payload is not line and isinstance(payload.get("type"), str) else kind
        time = line.get("timestamp")
        if payload is not line:
            self.fields.ignore_rest(line, ("type", "payload", "timestamp"), kind)
        if kind == "session_meta":
            self.fields.became(name, "agent")
            self._add_meta(payload)
        elif kind == "turn_context":
            self.fields.became(name, "agent")
            self.model = str(payload.get("model") or self.model)
            self.fields.ignore_rest(payload, ("type", "model"), name)
        elif kind == "response_item" or (payload is line and kind in _OLDEST):
            self.fields.became(name, "steps")
            item = {key: value for key, value in payload.items() if key not in _UNREAD}
            self._add_item({"type": "message", **item}, time)
        elif kind == "compacted":
            self.fields.became(name, "steps")
            if payload.get("message"):
                self._add_item({"role": "user", "content": payload["message"]}, time)
        elif kind == "event_msg":
            self.fields.became(name, self._event(payload))
        elif "." in kind:
            self.fields.became(name, self._executed(kind, payload))
        else:
            self.fields.became(name, _NO_TURN)

    def _add_item(self, item: Json, time: Any) -> None:
        if item.get("type") == "message":
            item = {key: value for key, value in item.items() if key not in ("type", "id")} | (
                {"type": "message"} if item.get("role") == "assistant" else {}
            )
        self.items.append((item, {"timestamp": time, "model": self.model}))

    def _add_meta(self, payload: Json) -> None:
        self.about = payload
        base = payload.get("base_instructions")
        system = "base_instructions" if isinstance(base, dict) and base.get("text") else "instructions"
        for name, value in payload.items():
            word = _OF_META.get(name, "metadata")
            word = "metadata" if word == "steps" and name != system else word
            self.fields.became(f"session_meta.{name}", word)
            if word == "metadata" and name != "type" and value is not None:
                self.metadata[name] = value
        given = base["text"] if isinstance(base, dict) and system == "base_instructions" else payload.get(system)
        if isinstance(given, str) and given:
            self._add_item({"role": "system", "content": given}, None)

    def _event(self, payload: Json) -> str:
        kind = payload.get("type")
        if kind == "token_count" and isinstance(info := payload.get("info"), dict):
            self._use(info.get("last_token_usage"), info.get("total_token_usage"))
            return "usage"
        if kind in ("error", "turn_aborted"):
            self._raise(str(payload.get("message") or payload.get("reason") or kind))
            return "exception"
        return _REPEATED if kind in ("user_message", "agent_message", "agent_reasoning") else _NO_TURN

    def _raise(self, text: str) -> None:
        if text not in self.exception:
            self.exception = f"{self.exception}\n{text}".strip()

    def _use(self, last: Any, total: Any) -> None:
        if self.items and isinstance(last, dict):
            self.items[-1][1]["usage"] = last
        if isinstance(total, dict):
            self.totals = {f"total_{name}": value for name, value in metrics_of({"usage": total}).items()}

    def _executed(self, kind: str, line: Json) -> str:
        """Add an event of `codex exec`. Return the word for its place in the account."""
        item = line.get("item")
        if kind == "thread.started":
            self.about = {"id": line.get("thread_id")}
            return "id"
        if kind == "turn.completed":
            self._use(line.get("usage"), line.get("usage"))
            return "usage"
        if kind == "turn.failed":
            error = line.get("error")
            self._raise(str(error.get("message") if isinstance(error, dict) else error or kind))
            return "exception"
        if kind != "item.completed" or not isinstance(item, dict):
            return _NO_TURN
        self.fields.ignore_rest(item, _OF_ITEM.union(*_EXECUTED.get(_kind_of(item), ((),))[:1]), f"{kind}.item")
        items = list(_item_of(item))
        for each in items:
            self._add_item(each, line.get("timestamp"))
        return "steps" if items else _TOLD

    def session(self) -> AgentSession:
        messages = read_with_facts(self.items, "payload", self.fields)
        about = self.about
        tools = read_tools(about.get("dynamic_tools"), "session_meta.dynamic_tools")
        return AgentSession(
            layout=NAME,
            steps=messages.steps,
            agent=agent_of(AGENT, str(about.get("cli_version") or ""), model_of(messages.steps), tools),
            origin=SessionOrigin(id=str(about.get("id") or "")),
            verdict=VerifierResult(exception=self.exception),
            usage=usage_of(messages.steps, self.totals),
            metadata=self.metadata,
        )


def _kind_of(item: Json) -> str:
    return str(item.get("type", item.get("item_type")))


def _item_of(item: Json) -> Iterator[Json]:
    """Yield the items of the Responses API that one of `codex exec` is. Raises `RowRefused` for an unknown one."""
    kind = _kind_of(item)
    if kind in ("agent_message", "assistant_message"):
        yield {"type": "message", "role": "assistant", "content": item.get("text") or ""}
    elif kind == "reasoning":
        yield {"type": "reasoning", "summary": item.get("text") or ""}
    elif kind in _EXECUTED:
        asked, answered = _EXECUTED[kind]
        name = "shell" if kind == "command_execution" else kind
        yield {
            "type": "function_call",
            "call_id": item.get("id"),
            "name": name,
            "arguments": {key: item[key] for key in asked if key in item},
        }
        result = next((item[key] for key in answered if item.get(key) is not None), None)
        if result is not None:
            yield {"type": "function_call_output", "call_id": item.get("id"), "output": result}
    elif kind != "error":
        raise RowRefused(f"an item of the type {kind!r} is not known"[:300])
