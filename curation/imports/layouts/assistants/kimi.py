"""Sessions of Kimi CLI: `wire.jsonl` has an event in each line, of its protocol or, since 2026, of the model's context.

An answer is all between two beginnings of steps. Subagents are in events of the session, or in files of their own.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.messages.calls import read_tools
from curation.imports.layouts.messages.documents import MessageAndFacts, read_with_facts
from curation.imports.layouts.messages.metrics import usage_of
from curation.imports.layouts.session import AgentSession, Json, SessionOrigin, VerifierResult, agent_of
from curation.imports.sources.rows import RowRefused

NAME, AGENT = "Kimi CLI session", "kimi-cli"
FILE, MAIN = "wire.jsonl", "agents/main/wire.jsonl"
_SAID, _PROMPTS = "context.append_", ("turn.prompt", "turn.steer")
_UNSEEN = "ignored: the model does not see it"
# What becomes of events that no method reads; of others it is `_UNSEEN`.
_OTHERS = {
    **dict.fromkeys(_PROMPTS, "ignored: the context has it"),
    **dict.fromkeys(("usage.record", "TurnEnd"), "ignored: the steps have it"),
    "context.apply_compaction": "ignored: the messages before it are kept",
}
# Where and when an event was.
_OF_RESULT = ("output", "message", "is_error", "isError")
_PLACE = ("type", "time", "timestamp", "uuid", "turnId", "step", "stepUuid", "parentUuid", "agentId", "n")
_STARTED = re.compile(r"^agent_id: (\S+)$", re.MULTILINE)


def is_line(line: Mapping[str, Any]) -> bool:
    """Whether a line is one of such a file."""
    kind, message = line.get("type"), line.get("message")
    if kind == "metadata":
        return "protocol_version" in line
    is_event = isinstance(message, dict) and "payload" in message and str(message.get("type")) in _EVENTS
    return is_event or str(kind).startswith(_SAID)


def session_of(name: str) -> str:
    """Return the id of a session by the folder of its file, or an empty text."""
    folder = name.removesuffix(MAIN).removesuffix(FILE)
    return folder.rstrip("/").rpartition("/")[2] if folder != name else ""


def read(lines: Sequence[Json], files: Mapping[str, Sequence[Json]], identifier: str) -> DocumentReading:
    """Return the session of a file. `files` have the lines of its subagents by their ids. Raises `RowRefused`."""
    log = _Log(Fields({}))
    log.add_lines(lines)
    for name, inner in files.items():
        log.subagent(name).add_lines(inner)
    session = log.session()
    if not session.steps:
        raise RowRefused("the log has no messages of a user or an assistant")
    session.origin = SessionOrigin(id=identifier)
    return DocumentReading([session], log.fields.account())


@dataclass(slots=True)
class _Log:
    """`answer` is the open one. `started` has the subagents that each call started."""

    fields: Fields
    messages: list[MessageAndFacts] = field(default_factory=list)
    answer: MessageAndFacts | None = None
    subagents: "dict[str, _Log]" = field(default_factory=dict)
    started: dict[str, list[str]] = field(default_factory=dict)
    tools: Sequence[Json] = ()
    system: str = ""
    model: str = ""
    exception: str = ""

    def add_lines(self, lines: Sequence[Json]) -> None:
        has_context = any(line.get("type") == f"{_SAID}message" for line in lines)
        for line in lines:
            kind, event, time = str(line.get("type")), line, line.get("time")
            if event_of := next((name for name in ("event", "message") if isinstance(line.get(name), dict)), ""):
                self.fields.ignore_rest(line, (event_of, *_PLACE), str(line.get("type", "lines")))
            if "type" not in line and isinstance(line.get("message"), dict):
                kind, event, time = str(line["message"]["type"]), line["message"]["payload"], line.get("timestamp")
            elif kind == f"{_SAID}loop_event":
                kind, event = str(line["event"]["type"]), line["event"]
            elif kind in _PROMPTS and not has_context:
                kind, event = "TurnBegin", {"user_input": line.get("input")}
            if kind not in _EVENTS and str(line.get("type")).startswith(_SAID):
                raise RowRefused(f"an event of the context has the type {kind!r}, which is not known"[:300])
            self.add(kind, event, time)

    def add(self, kind: str, event: Json, time: Any) -> None:
        if kind not in _EVENTS:
            self.fields.became(kind, _OTHERS.get(kind, _UNSEEN))
            return
        becomes, known, method = _EVENTS[kind]
        self.fields.became(kind, becomes)
        if known:
            self.fields.ignore_rest(event, (*known, *_PLACE), kind)
        method(self, event, time)

    def subagent(self, name: str) -> "_Log":
        return self.subagents.setdefault(name, _Log(self.fields))

    def session(self) -> AgentSession:
        read = read_with_facts(self.messages, "messages", self.fields)
        inner = {name: one.session() for name, one in self.subagents.items()}
        for name, one in inner.items():
            one.document = {"trajectory_id": name}
        for result in (one for step in read.steps for one in (step.get("observation") or {"results": ()})["results"]):
            names = [name for name in self.started.get(result.get("source_call_id"), ()) if name in inner]
            if names:
                result["subagent_trajectory_ref"] = [{"trajectory_id": name} for name in names]
        return AgentSession(
            layout=NAME,
            steps=read.steps,
            agent=agent_of(AGENT, model=self.model, tools=self.tools),
            verdict=VerifierResult(exception=self.exception),
            usage=usage_of(read.steps),
            subagents=[one for one in inner.values() if one.steps],
        )

    def say(self, message: Json, time: Any) -> None:
        self.messages.append((message, {"timestamp": time}))
        self.answer = None

    def ask(self, event: Json, time: Any) -> None:
        self.say({"role": "user", "content": event["user_input"]}, time)

    def add_message(self, event: Json, time: Any) -> None:
        self.say(dict(event["message"]), time)

    def configure(self, event: Json, time: Any) -> None:
        self.model = str(event.get("model") or event.get("modelAlias") or self.model)
        if (system := event.get("systemPrompt")) and system != self.system:
            self.system = system
            self.say({"role": "system", "content": system}, time)

    def declare(self, event: Json, time: Any) -> None:
        if isinstance(tools := event.get("tools"), list):
            self.tools = read_tools(tools, "tools")

    def begin(self, event: Json, time: Any) -> None:
        self.answer = None

    def open(self, time: Any) -> MessageAndFacts:
        """Return the open answer, or a new one. Results that come before its last part are after it."""
        if self.answer is None:
            answer = {"role": "assistant", "content": [], "tool_calls": []}
            self.messages.append((answer, {"timestamp": time, "model": self.model}))
            self.answer, self.exception = self.messages[-1], ""
        return self.answer

    def add_part(self, event: Json, time: Any) -> None:
        self.open(time)[0]["content"].append(event.get("part", event))

    def call(self, event: Json, time: Any) -> None:
        function: Json = event.get("function") or {"name": event.get("name"), "arguments": event.get("args")}
        identifier = event.get("id", event.get("toolCallId"))
        self.open(time)[0]["tool_calls"].append({"id": identifier, "function": {**function}})

    def continue_call(self, event: Json, time: Any) -> None:
        if not (calls := self.open(time)[0]["tool_calls"]):
            raise RowRefused("a part of a call is before the call")
        function = calls[-1]["function"]
        function["arguments"] = (function.get("arguments") or "") + (event.get("arguments_part") or "")

    def answer_call(self, event: Json, time: Any) -> None:
        given = event.get("return_value", event.get("result"))
        result = given if isinstance(given, dict) else {"output": given}
        identifier, output = event.get("tool_call_id", event.get("toolCallId")), result.get("output")
        failed = result.get("is_error") or result.get("isError")
        self.fields.ignore_rest(result, _OF_RESULT, "results")
        content = output or result.get("message") or ""
        message = {"role": "tool", "tool_call_id": identifier, "content": content, "is_error": failed}
        self.messages.append((message, {}))
        if isinstance(output, str):
            self.started.setdefault(str(identifier), []).extend(_STARTED.findall(output))

    def use(self, event: Json, time: Any) -> None:
        if used := event.get("usage", event.get("token_usage")):
            self.open(time)[1]["usage"] = used

    def tell(self, event: Json, time: Any) -> None:
        call, inner = str(event.get("parent_tool_call_id") or event.get("task_tool_call_id")), event["event"]
        name = str(event.get("agent_id") or call)
        self.subagent(name).add(str(inner["type"]), inner["payload"], time)
        self.started[call] = list(dict.fromkeys((*self.started.get(call, ()), name)))

    def undo(self, event: Json, time: Any) -> None:
        """Take back the last prompts of the user with all after them."""
        asked = [at for at, (message, _) in enumerate(self.messages) if _is_prompt(message)]
        if event["count"] > 0:
            del self.messages[asked[-event["count"]] if event["count"] <= len(asked) else 0 :]
        self.answer = None

    def stop(self, event: Json, time: Any) -> None:
        self.exception = "interrupted"


def _is_prompt(message: Json) -> bool:
    origin = message.get("origin") or {"kind": "user"}
    return message["role"] == "user" and origin.get("kind") == "user"


# What becomes of each event, the fields of it that are read, and the method that reads them. The fields of a part are
# in the account of its message.
_EVENTS: Mapping[str, tuple[str, tuple[str, ...], Callable[[_Log, Json, Any], None]]] = {
    **dict.fromkeys(("TurnBegin", "SteerInput"), ("steps", ("user_input",), _Log.ask)),
    f"{_SAID}message": ("steps", ("message",), _Log.add_message),
    **dict.fromkeys(
        ("config.update", "profile.bind"), ("steps, agent", ("systemPrompt", "modelAlias"), _Log.configure)
    ),
    "llm.request": ("agent", ("model", "modelAlias"), _Log.configure),
    "llm.tools_snapshot": ("tools", ("tools",), _Log.declare),
    **dict.fromkeys(("StepBegin", "step.begin"), ("steps", ("retry",), _Log.begin)),
    "ContentPart": ("steps", (), _Log.add_part),
    "content.part": ("steps", ("part",), _Log.add_part),
    "ToolCall": ("steps", ("id", "function"), _Log.call),
    "tool.call": ("steps", ("toolCallId", "name", "args"), _Log.call),
    "ToolCallPart": ("steps", ("arguments_part",), _Log.continue_call),
    "ToolResult": ("steps", ("tool_call_id", "return_value"), _Log.answer_call),
    "tool.result": ("steps", ("toolCallId", "result"), _Log.answer_call),
    "StatusUpdate": ("usage", ("token_usage",), _Log.use),
    "step.end": ("usage", ("usage",), _Log.use),
    "SubagentEvent": ("steps", ("parent_tool_call_id", "task_tool_call_id", "agent_id", "event"), _Log.tell),
    "context.undo": ("ignored: a person took these messages back", ("count",), _Log.undo),
    **dict.fromkeys(("StepInterrupted", "turn.cancel"), ("exception", (), _Log.stop)),
}
