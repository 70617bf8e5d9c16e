"""Sessions of Kimi CLI in the two notations of `wire.jsonl`, with their subagents."""

from typing import Any

import orjson
import pytest

from curation.imports.layouts.session import AgentSession, SessionUsage
from tests.imports.layouts.golden import becomes, documents, packed, said

META = {"type": "metadata", "protocol_version": "1.4"}
OLD_TOKENS = {"input_other": 9, "output": 4, "input_cache_read": 80, "input_cache_creation": 11}
NEW_TOKENS = {"inputOther": 9, "output": 4, "inputCacheRead": 80, "inputCacheCreation": 11}


def wire(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": 1_767_225_600.5, "message": {"type": kind, "payload": payload}}


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": kind, **more}, "time": 1_767_225_600_500}


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "context.append_message", "message": {"role": "user", "content": [text], "toolCalls": [], **more}}


def call(identifier: str, **function: Any) -> dict[str, Any]:
    return wire("ToolCall", type="function", id=identifier, function={"name": "Read", **function})


def part(kind: str, text: str) -> dict[str, Any]:
    return {"type": kind, kind: text}


# The arguments of the second call come after the first result.
OLD = [
    META,
    wire("TurnBegin", user_input=[{"type": "text", "text": "Fix it."}]),
    wire("StepBegin", n=1),
    wire("ContentPart", **part("think", "Hm.")),
    wire("ContentPart", **part("text", "I look.")),
    call("a", arguments='{"path": "a"}'),
    call("b"),
    wire("ToolResult", tool_call_id="a", return_value={"is_error": False, "output": "x = 1"}),
    wire("ToolCallPart", arguments_part='{"path":'),
    wire("ToolCallPart", arguments_part='"b"}'),
    wire("StatusUpdate", token_usage=OLD_TOKENS, context_usage=0.1),
    wire("ToolResult", tool_call_id="b", return_value={"is_error": True, "output": "", "message": "no"}),
    wire("StepBegin", n=2),
    wire("ContentPart", **part("text", "Done.")),
    wire("TurnEnd"),
]
NEW: list[dict[str, Any]] = [
    META,
    {"type": "config.update", "systemPrompt": "You are Kimi.", "modelAlias": "kimi/k2"},
    {"type": "llm.tools_snapshot", "tools": [{"name": "Read", "parameters": {"type": "object"}}]},
    {"type": "llm.request", "model": "k2", "maxTokens": 9},
    {"type": "turn.prompt", "input": [{"type": "text", "text": "Fix it."}]},
    user("Fix it."),
    event("step.begin", uuid="s1"),
    event("content.part", part=part("think", "Hm.")),
    event("content.part", part=part("text", "I look.")),
    event("tool.call", toolCallId="a", name="Read", args={"path": "a"}),
    event("tool.call", toolCallId="b", name="Read", args={"path": "b"}),
    event("tool.result", toolCallId="a", result={"output": "x = 1"}),
    event("tool.result", toolCallId="b", result={"output": "no", "isError": True}),
    event("step.end", uuid="s1", usage=NEW_TOKENS),
    user("Wrong."),
    event("step.begin", uuid="s2"),
    event("content.part", part=part("text", "Sorry?")),
    *({"type": "context.undo", "count": count} for count in (1, 0)),
    event("step.begin", uuid="s3"),
    event("content.part", part=part("text", "Done.")),
]


def lines(events: list[dict[str, Any]]) -> bytes:
    return b"\n".join(map(orjson.dumps, events))


def session(files: dict[str, bytes], name: str) -> AgentSession:
    document = documents(packed(files))[name]
    assert document.reading, document.refused
    (found,) = document.reading.sessions
    return found


@pytest.mark.parametrize("events", [OLD, NEW])
def test_answers_calls_and_tokens_are_read_in_both_notations(events: list[dict[str, Any]]) -> None:
    found = session({"h/id-1/wire.jsonl": lines(events)}, "h/id-1/wire.jsonl")
    spoken = [("user", "Fix it."), ("agent", "I look."), ("agent", "Done.")]
    assert said(found) == ([("system", "You are Kimi.")] if events is NEW else []) + spoken
    step = found.steps[-2]
    assert (step["reasoning_content"], step["timestamp"]) == ("Hm.", "2026-01-01T00:00:00.500000+00:00")
    assert [one["arguments"] for one in step["tool_calls"]] == [{"path": "a"}, {"path": "b"}]
    first, second = step["observation"]["results"]
    assert (first["content"], second["content"], second["extra"]) == ("x = 1", "no", {"is_error": True})
    assert found.usage == SessionUsage(100, 4, 80, None, 0.0)
    assert found.origin.id == "id-1"
    if events is NEW:
        assert (found.agent["model_name"], len(found.tools)) == ("k2", 1)


def test_events_that_are_not_read_are_in_the_account() -> None:
    events = [*NEW, event("tool.result", toolCallId="a", result={"output": "", "note": "n"}) | {"seq": 1}]
    account = becomes(documents(packed({"wire.jsonl": lines(events)}))["wire.jsonl"])
    assert account["turn.prompt"] == "ignored: the context has it"
    assert account["metadata"] == "ignored: the model does not see it"
    assert account["context.undo"] == "ignored: a person took these messages back"
    assert account["llm.request.maxTokens"] == account["results.note"] == "ignored"
    assert account["context.append_loop_event.seq"] == "ignored"


def test_prompts_that_are_not_in_the_context_are_read() -> None:
    left_out = ("context.append_message", "context.undo")
    found = session({"wire.jsonl": lines([one for one in NEW if one["type"] not in left_out])}, "wire.jsonl")
    assert [text for source, text in said(found) if source == "user"] == ["Fix it."]


def test_an_unknown_event_of_the_context_refuses_the_session() -> None:
    document = documents(packed({"wire.jsonl": lines([*NEW, event("tool.vision", text="Seen.")])}))["wire.jsonl"]
    assert "'tool.vision', which is not known" in document.refused


@pytest.mark.parametrize("in_files", [False, True])
def test_subagents_are_named_at_the_call_that_started_them(in_files: bool) -> None:
    if in_files:
        inner = [user("Look.", origin={"kind": "system_trigger"}), event("content.part", part=part("text", "Seen."))]
        main = [
            user("Go."),
            event("tool.call", toolCallId="t", name="Agent", args={}),
            event("tool.result", toolCallId="t", result={"output": "agent_id: agent-0\nstatus: completed"}),
        ]
        files = {"s/agents/main/wire.jsonl": lines(main), "s/agents/agent-0/wire.jsonl": lines(inner)}
        found = session(files, "s/agents/main/wire.jsonl")
    else:
        told = [{"type": "TurnBegin", "payload": {"user_input": "Look."}}]
        told += [{"type": "ContentPart", "payload": part("text", "Seen.")}]
        events = [wire("SubagentEvent", parent_tool_call_id="t", agent_id="agent-0", event=one) for one in told]
        answer = wire("ToolResult", tool_call_id="t", return_value={"output": "Seen."})
        started = [wire("TurnBegin", user_input="Go."), call("t", arguments="{}")]
        found = session({"s/wire.jsonl": lines([*started, *events, answer])}, "s/wire.jsonl")
    assert [said(one) for one in found.subagents] == [[("user", "Look."), ("agent", "Seen.")]]
    assert found.steps[1]["observation"]["results"][0]["subagent_trajectory_ref"] == [{"trajectory_id": "agent-0"}]
    assert found.origin.id == "s"


def test_the_context_beside_the_events_is_not_read_again() -> None:
    """Alone it is a session too, whose answers have their thinking in parts."""
    thought = {"role": "assistant", "content": [part("think", "Hm."), part("text", "Done.")]}
    context = lines([{"role": "_system_prompt", "content": "S"}, {"role": "user", "content": "Fix it."}, thought])
    both = packed({"s/wire.jsonl": lines(OLD), "s/context.jsonl": context})
    assert list(documents(both)) == ["s/wire.jsonl"]
    assert both.became["s/context.jsonl"] == "ignored: wire.jsonl has its messages"
    row = documents(packed({"s/context.jsonl": context}))["s/context.jsonl"].row
    assert row
    assert len(row.value["messages"]) == 3  # type: ignore[arg-type]
