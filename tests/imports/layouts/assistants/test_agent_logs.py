import json
import sys
from collections.abc import Mapping

import pytest

from curation.imports.layouts.session import AgentSession, SessionUsage
from tests.imports.layouts.golden import becomes, documents, golden, packed, said, sessions

CLAUDE = "claude/5e551000-0000-4000-8000-000000000001.jsonl"


def log(name: str) -> AgentSession:
    document = documents(golden("agent_logs"))[name]
    assert document.reading, document.refused
    return document.reading.sessions[0]


def test_a_session_of_claude_code() -> None:
    session = log(CLAUDE)
    assert said(session) == [("user", "Fix the bug."), ("agent", "I look."), ("agent", ""), ("agent", "Fixed.")]
    assert [said(one) for one in session.subagents] == [[("user", "Find a.py."), ("agent", "Found.")]]
    step = session.steps[1]
    assert (step["reasoning_content"], step["tool_calls"][0]["arguments"]) == ("Look first.", {"command": "ls"})
    assert step["observation"]["results"][0]["content"] == "a.py"
    assert session.agent["model_name"] == "claude-sonnet-4-5"
    assert session.usage == SessionUsage(200, 10, 180, None, 7.0)
    assert step["timestamp"] == "2026-01-01T00:00:01.000Z"
    assert session.steps[2]["observation"]["results"][0]["subagent_trajectory_ref"] == [{"trajectory_id": "a1"}]


def test_a_stream_of_claude_code_has_its_cost() -> None:
    session = log("claude/stream.jsonl")
    assert said(session)[-1] == ("agent", "Fixed.")
    assert session.usage.cost_usd == 0.02


@pytest.mark.parametrize(
    ("name", "seconds"), [("codex/rollout-2026-01-01T00-00-00-x.jsonl", 3.0), ("codex/exec.jsonl", None)]
)
def test_codex(name: str, seconds: float | None) -> None:
    session = log(name)
    assert said(session)[-1] == ("agent", "Fixed.")
    calls = [call for step in session.steps for call in step.get("tool_calls") or []]
    assert [call["function_name"] for call in calls] == ["shell"]
    assert session.usage == SessionUsage(100, 20, 60, None, seconds)


def test_the_system_prompt_of_codex_is_its_first_step() -> None:
    session = log("codex/rollout-2026-01-01T00-00-00-x.jsonl")
    assert said(session)[:2] == [("system", "You are Codex."), ("user", "Fix the bug.")]
    assert [step["step_id"] for step in session.steps] == list(range(1, len(session.steps) + 1))


def test_logs_become_valid_documents() -> None:
    assert len(sessions(golden("agent_logs"))) == 4


def test_lines_and_their_fields_have_an_account() -> None:
    log(CLAUDE)
    account = becomes(documents(golden("agent_logs"))[CLAUDE])
    assert account["assistant"] == account["user"] == "steps"
    assert account["file-history-snapshot"] == "ignored: it is no turn"
    assert account["user.gitBranch"] == "metadata"
    assert account["user.userType"] == "ignored"


def lines(*rows: Mapping[str, object]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def told(kind: str, content: object, identifier: str, parent: str | None, **more: object) -> dict[str, object]:
    message = {"role": kind, "content": content, **({"id": identifier} if kind == "assistant" else {})}
    return {"type": kind, "message": message, "uuid": identifier, "parentUuid": parent, "sessionId": "s", **more}


def test_a_prompt_that_was_taken_back_is_left_out_with_what_followed() -> None:
    log = lines(
        told("user", "Hi.", "a", None),
        told("assistant", "Hello.", "b", "a"),
        told("user", "Wrong.", "c", "b"),
        told("assistant", "Sorry?", "d", "c"),
        told("user", "Right.", "e", "b"),
        told("assistant", "Done.", "f", "e"),
    )
    document = documents(packed({"s.jsonl": log}))["s.jsonl"]
    assert document.reading
    assert [text for _, text in said(document.reading.sessions[0])] == ["Hi.", "Hello.", "Right.", "Done."]
    assert {"field": "assistant.uuid", "rows": 1, "becomes": "ignored: a person took this message back"} in (
        document.reading.account.entries()
    )


def test_lines_of_a_side_chain_are_a_subagent_of_the_call_with_their_prompt() -> None:
    call = {"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "Look."}}
    log = lines(
        told("user", "Go.", "a", None),
        told("assistant", [call], "b", "a"),
        told("user", "Look.", "x", None, isSidechain=True),
        told("assistant", "Seen.", "y", "x", isSidechain=True),
        told("user", [{"type": "tool_result", "tool_use_id": "t", "content": "Seen."}], "c", "b"),
        told("assistant", "API Error: 500", "d", "c", isApiErrorMessage=True),
    )
    document = documents(packed({"s.jsonl": log}))["s.jsonl"]
    assert document.reading
    session = document.reading.sessions[0]
    assert said(session) == [("user", "Go."), ("agent", "")]
    assert said(session.subagents[0]) == [("user", "Look."), ("agent", "Seen.")]
    assert session.steps[1]["observation"]["results"][0]["subagent_trajectory_ref"] == [{"trajectory_id": "x"}]
    assert session.verdict.exception == "API Error: 500"


def test_files_of_subagents_beside_the_session_that_they_name_are_its_subagents() -> None:
    """Older versions keep them there."""
    call = {"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "Find it."}}
    answer = [{"type": "tool_result", "tool_use_id": "t", "content": "Seen."}]
    files = {
        "p/s.jsonl": lines(
            told("user", "Go.", "a", None),
            told("assistant", [call], "b", "a"),
            told("user", answer, "c", "b", toolUseResult={"agentId": "x1", "status": "completed"}),
        ),
        "p/agent-x1.jsonl": lines(
            told("user", "Look.", "x", None, isSidechain=True, agentId="x1"),
            told("assistant", "Seen.", "y", "x", isSidechain=True, agentId="x1"),
        ),
        "p/agent-z1.jsonl": lines(
            told("user", "Of no session here.", "z", None, isSidechain=True) | {"sessionId": "z"}
        ),
    }
    folder = packed(files)
    found = documents(folder)
    assert sorted(found) == ["p/agent-z1.jsonl", "p/s.jsonl"]
    reading = found["p/s.jsonl"].reading
    assert reading
    (session,) = reading.sessions
    assert [said(one) for one in session.subagents] == [[("user", "Look."), ("agent", "Seen.")]]
    assert session.steps[1]["observation"]["results"][0]["subagent_trajectory_ref"] == [{"trajectory_id": "x1"}]
    assert folder.became["p/agent-x1.jsonl"] == "Claude Code log"


def test_only_one_of_two_system_prompts_of_codex_is_a_step() -> None:
    meta = {"id": "c", "instructions": "Of the project.", "base_instructions": {"text": "You are Codex."}}
    asked = {"type": "message", "role": "user", "content": "Fix it."}
    rows = ({"type": "session_meta", "payload": meta}, {"type": "response_item", "payload": asked})
    document = documents(packed({"rollout.jsonl": lines(*rows)}))["rollout.jsonl"]
    assert document.reading
    assert said(document.reading.sessions[0]) == [("system", "You are Codex."), ("user", "Fix it.")]
    assert document.reading.sessions[0].metadata == {"instructions": "Of the project."}
    assert becomes(document)["session_meta.instructions"] == "metadata"


def test_items_of_codex_that_the_service_runs_are_calls() -> None:
    items = (
        {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "compaction", "encrypted_content": "x"},
    )
    rows = ({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": item} for item in items)
    meta = {"type": "session_meta", "payload": {"id": "c", "source": {"subagent": "review"}}}
    document = documents(packed({"rollout-1.jsonl": lines(meta, *rows)}))["rollout-1.jsonl"]
    assert document.reading
    session = document.reading.sessions[0]
    calls = [call for step in session.steps for call in step["tool_calls"]]
    assert [(call["function_name"], call["arguments"]) for call in calls] == [
        ("apply_patch", {"input": "*** Begin Patch"}),
        ("web_search", {"action": {"type": "search", "query": "q"}}),
    ]
    assert session.steps[0]["observation"]["results"] == [{"source_call_id": "c", "content": "ok"}]
    assert session.metadata == {"source": {"subagent": "review"}}


def test_without_atif_make_a_log_is_refused_with_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "atif_make", None)
    log = lines({"role": "user", "message": {"content": [{"type": "text", "text": "Hi."}]}})
    refused = documents(packed({"cursor.jsonl": log}))["cursor.jsonl"].refused
    assert "extra `agents`" in refused
    assert "Python 3.12" in refused
