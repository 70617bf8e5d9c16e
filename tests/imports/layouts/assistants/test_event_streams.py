"""Events that Gemini CLI and opencode print are sessions like those that they keep."""

import io
from typing import Any

import orjson
import pytest

from curation.imports.layouts.folder import Document, DocumentFolder
from tests.imports.layouts.golden import said

GEMINI: list[dict[str, Any]] = [
    {"type": "init", "timestamp": "2026-01-01T00:00:00Z", "session_id": "s-1", "model": "gemini-3-pro"},
    {"type": "message", "timestamp": "2026-01-01T00:00:01Z", "role": "user", "content": "Fix it."},
    {"type": "message", "timestamp": "2026-01-01T00:00:02Z", "role": "assistant", "content": "I ", "delta": True},
    {"type": "message", "timestamp": "2026-01-01T00:00:03Z", "role": "assistant", "content": "look.", "delta": True},
    {"type": "tool_use", "tool_name": "read_file", "tool_id": "c1", "parameters": {"path": "a.py"}},
    {"type": "tool_use", "tool_name": "run", "tool_id": "c2", "parameters": {}},
    {"type": "tool_result", "tool_id": "c2", "status": "error", "error": {"type": "FAILED", "message": "no"}},
    {"type": "tool_result", "tool_id": "c1", "status": "success", "output": "x = 1"},
    {"type": "error", "severity": "warning", "message": "Loop detected"},
    {"type": "message", "timestamp": "2026-01-01T00:00:09Z", "role": "assistant", "content": "Done.", "delta": True},
    {
        "type": "result",
        "status": "success",
        "stats": {"total_tokens": 40, "input_tokens": 30, "output_tokens": 10, "cached": 5, "duration_ms": 9000},
    },
]
TOOL = {"type": "tool", "callID": "c1", "tool": "bash", "state": {"status": "completed", "input": {}, "output": "a.py"}}
TOKENS = {"input": 9, "output": 2, "reasoning": 0, "cache": {"read": 80, "write": 11}}
OPENCODE: list[dict[str, Any]] = [
    {"type": "step_start", "part": {"type": "step-start", "snapshot": "0a"}},
    {"type": "reasoning", "part": {"type": "reasoning", "text": "Hm."}},
    {"type": "text", "part": {"type": "text", "text": "I look."}},
    {"type": "tool_use", "part": TOOL},
    {"type": "step_finish", "part": {"type": "step-finish", "reason": "tool-calls", "cost": 0.1, "tokens": TOKENS}},
    {"type": "step_start", "part": {"type": "step-start"}},
    {"type": "text", "part": {"type": "text", "text": "Done."}},
    {"type": "step_finish", "part": {"type": "step-finish", "reason": "stop", "cost": 0.2, "tokens": TOKENS}},
    {"type": "done", "reason": "idle", "rejected": []},
]
OPENCODE = [{**one, "timestamp": 1767225600000 + at, "sessionID": "ses_1"} for at, one in enumerate(OPENCODE)]


def read(events: list[dict[str, Any]], before: bytes = b"") -> Document:
    content = before + b"\n".join(map(orjson.dumps, events))
    ((_, document),) = DocumentFolder(["run.jsonl"], lambda name: io.BytesIO(content)).documents()
    return document


def test_the_events_of_gemini_are_a_session() -> None:
    document = read(GEMINI, b"Loaded cached credentials.\n")
    assert document.reading, document.refused
    (session,) = document.reading.sessions
    assert said(session) == [("user", "Fix it."), ("agent", "I look."), ("agent", "Done.")]
    assert session.agent["model_name"] == "gemini-3-pro"
    assert session.origin.id == "s-1"
    assert [call["function_name"] for call in session.steps[1]["tool_calls"]] == ["read_file", "run"]
    results = {one["source_call_id"]: one for one in session.steps[1]["observation"]["results"]}
    assert (results["c1"]["content"], results["c2"]["content"]) == ("x = 1", "no")
    assert results["c2"]["extra"] == {"is_error": True}
    usage = session.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.seconds) == (30, 10, 5, 8.0)


@pytest.mark.parametrize(
    ("event", "exception"),
    [
        ({"type": "error", "severity": "error", "message": "Maximum session turns exceeded"}, "Maximum session turns"),
        ({"type": "result", "status": "error", "error": {"type": "Auth", "message": "no key"}}, "Auth: no key"),
    ],
)
def test_an_error_of_gemini_is_the_exception(event: dict[str, Any], exception: str) -> None:
    document = read([*GEMINI[:4], event])
    assert document.reading
    assert document.reading.sessions[0].verdict.exception.startswith(exception)


def test_what_the_events_of_gemini_say_beside_the_messages_is_kept_or_told() -> None:
    errors = [{"type": "error", "severity": "error", "message": text} for text in ("First.", "Second.")]
    failed = {"type": "result", "status": "error", "error": {"type": "Auth", "message": "no key"}}
    document = read([*GEMINI[:-1], *errors, {**GEMINI[-1], **failed}])
    assert document.reading
    (session,) = document.reading.sessions
    assert session.metadata["warnings"] == ["Loop detected"]
    assert session.verdict.exception == "First.\nSecond.\nAuth: no key"
    account = {one["field"]: one["becomes"] for one in document.reading.account.entries()}
    assert (account["warnings"], account["stats.duration_ms"]) == ("metadata", "ignored")


def test_the_events_of_opencode_are_a_session() -> None:
    document = read(OPENCODE)
    assert document.reading, document.refused
    (session,) = document.reading.sessions
    assert said(session) == [("agent", "I look."), ("agent", "Done.")]
    first = session.steps[0]
    assert first["reasoning_content"] == "Hm."
    assert first["observation"]["results"][0]["content"] == "a.py"
    assert session.usage.cost_usd == pytest.approx(0.3)
    assert session.usage.input_tokens == 200
    assert session.origin.id == "ses_1"


def test_an_error_of_opencode_is_the_exception() -> None:
    error = {"type": "error", "sessionID": "ses_1", "error": {"name": "APIError", "data": {"message": "no"}}}
    document = read([*OPENCODE[:3], error])
    assert document.reading
    assert document.reading.sessions[0].verdict.exception == "APIError: no"
    assert "before its first step" in read([error]).refused


@pytest.mark.parametrize("events", [GEMINI, OPENCODE])
def test_fields_of_events_that_are_not_known_are_metadata(events: list[dict[str, Any]]) -> None:
    document = read([*({**one, "new": 1} for one in events[:2]), *events[2:]])
    assert document.reading, document.refused
    kept = document.reading.sessions[0].metadata["event_fields"]
    assert {name: value for name, value in kept.items() if name.endswith(".new")} == {
        f"{one['type']}.new": 1 for one in events[:2]
    }


@pytest.mark.parametrize("events", [GEMINI, OPENCODE])
def test_an_event_that_is_not_known_refuses_the_file(events: list[dict[str, Any]]) -> None:
    other = {**events[0], "sessionID": "ses_2"}
    assert "several sessions" in read([*events, other]).refused
    assert "'ponder'" in read([*events, {"type": "ponder", "sessionID": "ses_1", "part": {}}]).refused
