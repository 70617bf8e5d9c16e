import sys

import pytest

from curation.imports.layouts.session import Session, Usage
from tests.imports.layouts.golden import becomes, documents, golden, said, sessions

CLAUDE = "claude/5e551000-0000-4000-8000-000000000001.jsonl"


def log(name: str) -> Session:
    pytest.importorskip("atif_make")
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
    assert session.usage == Usage(200, 10, 180)


def test_a_stream_of_claude_code_has_its_cost() -> None:
    session = log("claude/stream.jsonl")
    assert said(session)[-1] == ("agent", "Fixed.")
    assert session.usage.cost_usd == 0.02


@pytest.mark.parametrize("name", ["codex/rollout-2026-01-01T00-00-00-x.jsonl", "codex/exec.jsonl"])
def test_codex(name: str) -> None:
    session = log(name)
    assert said(session)[-1] == ("agent", "Fixed.")
    calls = [call for step in session.steps for call in step.get("tool_calls") or []]
    assert [call["function_name"] for call in calls] == ["shell"]
    assert session.usage == Usage(100, 20, 60)


def test_the_system_prompt_of_codex_is_its_first_step() -> None:
    session = log("codex/rollout-2026-01-01T00-00-00-x.jsonl")
    assert said(session)[:2] == [("system", "You are Codex."), ("user", "Fix the bug.")]
    assert [step["step_id"] for step in session.steps] == list(range(1, len(session.steps) + 1))


def test_logs_become_valid_documents() -> None:
    pytest.importorskip("atif_make")
    assert len(sessions(golden("agent_logs"))) == 4


def test_lines_and_their_fields_have_an_account() -> None:
    log(CLAUDE)
    account = becomes(documents(golden("agent_logs"))[CLAUDE])
    assert account["assistant"] == account["user"] == "steps"
    assert account["file-history-snapshot"] == "ignored: it is no turn"
    assert account["user.gitBranch"] == "ignored"


def test_without_atif_make_a_log_is_refused_with_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "atif_make", None)
    refused = documents(golden("agent_logs"))[CLAUDE].refused
    assert "extra `agents`" in refused
    assert "Python 3.12" in refused
