"""Sessions in files of lines, in the shapes of Qwen Code, Droid, Grok and Antigravity, and runs of OSWorld."""

import json
from typing import Any

import pytest

from curation.imports.layouts.rows.read import read_row
from tests.imports.layouts.golden import documents, packed, said
from tests.imports.layouts.test_folder import lines

AROUND = {"sessionId": "s-1", "cwd": "/w", "version": "0.21"}
QWEN = [
    {**AROUND, "type": "user", "uuid": "1", "message": {"role": "user", "parts": [{"text": "Fix it."}]}},
    {**AROUND, "type": "system", "subtype": "ui_telemetry", "message": {"role": "system", "parts": []}},
    {
        **{**AROUND, "type": "assistant", "model": "qwen3", "usageMetadata": {"promptTokenCount": 9}},
        "message": {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True},
                {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}},
            ],
        },
    },
    {
        **{**AROUND, "type": "tool_result", "toolCallResult": {"callId": "c1"}},
        "message": {"role": "user", "parts": [{"functionResponse": {"id": "c1", "response": {"output": "a.py"}}}]},
    },
    {**AROUND, "type": "assistant", "message": {"role": "model", "parts": [{"text": "Done."}]}},
]
DROID = [
    {"type": "session_start", "id": "s-1", "cwd": "/w"},
    {"type": "message", "timestamp": "2026-01-01T00:00:00Z", "message": {"role": "user", "content": "Fix it."}},
    {"type": "todo_state", "todos": "- fix"},
    {
        "type": "message",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}},
            ],
        },
    },
    {
        "type": "message",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}]},
    },
    {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}},
]
GROK = [
    {"type": "user", "content": [{"type": "text", "text": "Fix it."}]},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {"type": "backend_tool_call", "kind": {"tool_type": "web_search"}},
    {
        **{"type": "assistant", "content": "", "model_id": "grok"},
        "tool_calls": [{"id": "c1", "name": "ls", "arguments": '{"path": "."}'}],
    },
    {"type": "tool_result", "tool_call_id": "c1", "content": "a.py"},
    {"type": "assistant", "content": "Done."},
]
STREAM = [
    {"type": "system", "session_id": "s-1", "model": "m"},
    {"type": "message", "role": "user", "text": "Fix it.", "id": "m1"},
    {"type": "reasoning", "text": "Hm."},
    {"type": "tool_call", "id": "t1", "toolCallId": "c1", "toolName": "ls", "parameters": {"path": "."}},
    {"type": "tool_result", "id": "t2", "toolCallId": "c1", "value": "a.py", "isError": True},
    {"type": "message", "role": "assistant", "text": "Done.", "id": "m2"},
    {"type": "completion", "finalText": "Done."},
]
_STEPS: list[dict[str, Any]] = [
    {"source": "USER_EXPLICIT", "type": "USER_INPUT", "content": "Fix it."},
    {"source": "SYSTEM", "type": "CONVERSATION_HISTORY"},
    {
        **{"source": "MODEL", "type": "PLANNER_RESPONSE", "thinking": "Hm."},
        "tool_calls": [{"id": "c1", "name": "ls", "args": {"path": "."}}],
    },
    {"source": "MODEL", "type": "LIST_DIRECTORY", "content": "a.py", "truncated_fields": ["content"]},
    {"source": "MODEL", "type": "PLANNER_RESPONSE", "content": "Done."},
]
ANTIGRAVITY = [{"step_index": at, "status": "DONE", **one} for at, one in enumerate(_STEPS)]


@pytest.mark.parametrize(
    ("given", "left_out", "model"),
    [
        (QWEN, "system", "qwen3"),
        (DROID, "todo_state", None),
        (GROK, "backend_tool_call", "grok"),
        (STREAM, "completion", "m"),
        (ANTIGRAVITY, "CONVERSATION_HISTORY", None),
    ],
)
def test_lines_with_messages_are_one_session_and_the_others_are_counted(
    given: list[dict[str, Any]], left_out: str, model: str | None
) -> None:
    row = documents(packed({"s.jsonl": lines(*given)}))["s.jsonl"].row
    assert row and row.faults == [(f"(lines: {left_out})", "ignored: it is no message")]
    session, _ = read_row(row.value)
    assert said(session) == [("user", "Fix it."), ("agent", ""), ("agent", "Done.")]
    step = session.steps[1]
    assert step["reasoning_content"] == "Hm." and session.agent.get("model_name") == model
    assert [(call["tool_call_id"], call["arguments"]) for call in step["tool_calls"]] == [("c1", {"path": "."})]
    extra = {"is_error": True} if given is STREAM else {"name": "LIST_DIRECTORY"} if given is ANTIGRAVITY else {}
    more = {"extra": extra} if extra else {}
    assert step["observation"]["results"] == [{"source_call_id": "c1", "content": "a.py", **more}]
    assert session.origin.id == ("" if given in (GROK, ANTIGRAVITY) else "s-1")


def test_a_run_of_osworld_has_its_screens_and_the_reward_beside_it() -> None:
    step = {"action_timestamp": "20260122@144314466359", "reward": 0, "done": False, "info": {}}
    steps = [
        {"step_num": 1, "action": "pyautogui.click(1, 2)", "response": "I click.", "screenshot_file": "step_1.png"},
        {"step_num": 1, "action": "WAIT", "response": "I click.", "screenshot_file": "step_1b.png"},
        {"step_num": 2, "action": "DONE", "response": "It is done.", "screenshot_file": "step_2.png"},
    ]
    run = lines(*({**one, **step} for one in steps), {"Error": "Time limit exceeded in os/t-1"})
    folder = packed({"os/t-1/traj.jsonl": run, "os/t-1/result.txt": b"1.0\n", "os/t-1/step_1.png": b"\x89PNG"})
    found = documents(folder)
    row = found["os/t-1/traj.jsonl"].row
    assert row
    session, account = read_row(row.value)
    assert said(session) == [("agent", "I click."), ("agent", ""), ("agent", "It is done.")]
    (result,) = session.steps[0]["observation"]["results"]
    assert result["content"][0]["source"]["path"] == "step_1.png"
    assert session.steps[0]["tool_calls"][0]["arguments"] == {"input": "pyautogui.click(1, 2)"}
    assert session.steps[0]["timestamp"] == "2026-01-22T14:43:14"
    assert (session.origin.task, session.verdict.rewards) == ("t-1", {"reward": 1.0})
    assert session.verdict.exception == "Time limit exceeded in os/t-1"
    assert folder.became["os/t-1/result.txt"] == "reward"
    assert {"field": "steps[].done", "rows": 1, "becomes": "ignored"} in account.entries()


def test_a_prompt_and_calls_without_a_text_are_a_session() -> None:
    row = documents(packed({"s.jsonl": lines(*STREAM[1:2], *STREAM[3:5], STREAM[6])}))["s.jsonl"].row
    assert row
    assert said(read_row(row.value)[0]) == [("user", "Fix it."), ("agent", "")]


def test_rows_with_a_message_each_are_no_session() -> None:
    rows = [
        {"type": "sample", "message": {"role": "assistant", "content": str(number)}, "id": number}
        for number in (1, 2, 3)
    ]
    found = documents(packed({"s.jsonl": lines({"about": 1}, {"about": 2}, *rows)}))
    assert [*found] == [f"s.jsonl:{number}" for number in range(1, 6)]


@pytest.mark.parametrize(
    "rows",
    [
        [{"conversation_id": at // 2, "role": ("user", "assistant")[at % 2], "content": str(at)} for at in range(4)],
        [{"type": "reasoning", "prompt": "Q", "content": str(at)} for at in range(4)],
        [{"type": "user", "text": str(at)} for at in range(4)],
    ],
)
def test_rows_that_look_like_messages_are_no_session(rows: list[dict[str, Any]]) -> None:
    assert len(documents(packed({"s.jsonl": lines(*rows)}))) == 4
    assert len(documents(packed({"s.json": json.dumps(rows[::2]).encode()}))) == (1 if "role" in rows[0] else 2)


def test_events_of_autogen_in_lines_are_one_session() -> None:
    events = [{"type": "TextMessage", "source": source, "content": "Hi."} for source in ("user", "coder")]
    row = documents(packed({"s.jsonl": lines(*events)}))["s.jsonl"].row
    assert row and said(read_row(row.value)[0]) == [("user", "Hi."), ("agent", "Hi.")]
