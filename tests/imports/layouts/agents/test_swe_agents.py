from curation.imports.layouts.agents import mini_swe_agent, swe_agent
from curation.imports.layouts.recognise import recognise
from curation.imports.layouts.session import SessionOutcome, SessionUsage
from tests.imports.layouts.golden import becomes, documents, golden, said, sessions


def test_a_trajectory_of_swe_agent_has_its_calls_reasoning_and_results() -> None:
    session = sessions(golden("swe_agent"))["org__repo-1"]
    assert said(session)[0] == ("system", "You fix bugs.")
    step = session.steps[3]
    assert (step["message"], step["reasoning_content"]) == ("I look around.", "Where is it?")
    assert step["tool_calls"][0]["arguments"] == {"command": "ls"}
    assert step["observation"]["results"] == [{"source_call_id": "call_1", "content": "a.py"}]
    assert session.agent == {"name": "SWE-agent", "version": "1.1.0", "model_name": "claude-sonnet-4"}
    assert session.usage == SessionUsage(100, 20, None, 0.5)
    assert (session.metadata["exit_status"], session.metadata["submission"][:4]) == ("submitted", "diff")


def test_demonstrations_are_context() -> None:
    session = sessions(golden("swe_agent"))["org__repo-1"]
    assert session.agent_steps() == [3]


def test_a_demonstration_may_be_its_history_alone() -> None:
    demonstration = {
        "history": [
            {"role": "user", "content": "Fix it.", "agent": "main", "message_type": "observation"},
            {
                "role": "assistant",
                "content": "ls",
                "agent": "main",
                "message_type": "action",
                "thought": "",
                "action": "ls",
            },
        ]
    }
    layout = recognise(demonstration)
    assert layout is not None and layout.name == swe_agent.NAME
    assert said(layout.read(demonstration).sessions[0]) == [("user", "Fix it."), ("agent", "ls")]


def test_reports_beside_trajectories_have_their_outcome() -> None:
    found = sessions(golden("swe_agent"))
    assert {name: found[name].verdict.outcome for name in ("org__repo-1", "org__repo-2", "org__repo-3")} == {
        "org__repo-1": SessionOutcome.SOLVED,
        "org__repo-2": SessionOutcome.FAILED,
        "org__repo-3": SessionOutcome.ERROR,
    }
    assert found["org__repo-1"].verdict.rewards == {"resolved": 1.0}
    assert found["org__repo-3"].verdict.exception == "exit_environment_error"


def test_only_the_attempt_that_was_submitted_has_the_outcome() -> None:
    document = documents(golden("swe_agent"))["run/org__repo-4/org__repo-4.traj"]
    assert document.reading
    found = [(one.origin.attempt, one.verdict.outcome) for one in document.reading.sessions]
    assert found == [(0, SessionOutcome.UNKNOWN), (1, SessionOutcome.SOLVED)]


def test_files_beside_trajectories_are_named() -> None:
    folder = golden("swe_agent")
    sessions(folder)
    assert folder.became["run/results.json"] == "outcomes of 4 instances"
    assert folder.became["run/preds.json"] == "ignored: predictions"
    assert folder.became["run/org__repo-1/org__repo-1.traj"] == "SWE-agent trajectory"


def test_every_field_of_a_trajectory_has_an_account() -> None:
    account = becomes(documents(golden("swe_agent"))["run/org__repo-1/org__repo-1.traj"])
    assert account["history"] == "steps"
    assert account["trajectory"] == "ignored: the history has its steps"
    assert account["info.submission"] == account["environment"] == "metadata"
    assert account["history[].thought"] == "ignored: the content has it"


def test_version_1_of_mini_swe_agent() -> None:
    session = sessions(golden("mini_swe_agent"))["org__repo-1"]
    assert [step["source"] for step in session.steps] == ["system", "user", "agent", "user"]
    assert session.agent == {"name": "mini-swe-agent", "version": "1.14.0", "model_name": "openai/gpt-5"}
    assert session.verdict.outcome == SessionOutcome.FAILED
    assert session.usage.cost_usd == 0.03
    assert session.metadata["exit_status"] == "Submitted"


def test_version_2_of_mini_swe_agent_calls_tools_and_ends_without_a_turn() -> None:
    session = sessions(golden("mini_swe_agent"))["v2"]
    assert [step["source"] for step in session.steps] == ["system", "user", "agent"]
    step = session.steps[-1]
    assert step["tool_calls"][0]["arguments"] == {"command": "ls"}
    assert step["observation"]["results"][0]["content"] == "<returncode>0</returncode>"
    assert step["timestamp"] == "2025-11-24T16:00:00+00:00"
    assert step["metrics"] == {"prompt_tokens": 50, "completion_tokens": 7, "cached_tokens": 5, "cost_usd": 0.01}
    assert session.usage == SessionUsage(50, 7, 5, 0.03, 4.5)
    assert session.verdict.outcome == SessionOutcome.UNKNOWN


def test_responses_of_the_responses_api_are_one_step() -> None:
    session = sessions(golden("mini_swe_agent"))["v2_responses"]
    step = session.steps[-1]
    assert (step["reasoning_content"], step["tool_calls"][0]["function_name"]) == ("Look first.", "bash")
    assert step["metrics"] == {"prompt_tokens": 40, "completion_tokens": 6, "cost_usd": 0.02}
    assert session.verdict.outcome == SessionOutcome.ERROR
    assert session.verdict.exception == "RuntimeError: container died"


def test_the_role_exit_is_no_step() -> None:
    row = {
        "info": {"exit_status": "Submitted", "submission": "diff"},
        "trajectory_format": "mini-swe-agent-1.1",
        "messages": [
            {"role": "user", "content": "Fix"},
            {"role": "assistant", "content": "```bash\nls\n```"},
            {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
        ],
    }
    reading = mini_swe_agent.read(row)
    [session] = reading.sessions
    assert [step["source"] for step in session.steps] == ["user", "agent"]
    assert session.metadata["exit_status"] == "Submitted"
    assert "ignored" not in {entry["becomes"] for entry in reading.account.entries()}
    [failed] = mini_swe_agent.read(row | {"info": {"exit_status": "Timeout", "traceback": "File …"}}).sessions
    assert (failed.verdict.outcome, failed.verdict.exception) == (SessionOutcome.ERROR, "Timeout")
