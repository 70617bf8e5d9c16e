import json

import pytest

from curation.imports.layouts.session import AgentSession, SessionOutcome, SessionUsage
from tests.imports.layouts.golden import becomes, documents, golden, packed


def trials() -> dict[str, list[AgentSession]]:
    found = documents(golden("harbor"))
    return {name.rpartition("__")[2]: list(one.reading.sessions) for name, one in found.items() if one.reading}


def test_a_trial_has_its_task_agent_rewards_and_usage() -> None:
    [session] = trials()["solved1"]
    assert (session.origin.task, session.origin.id[-1]) == ("tests/count-lines", "1")
    assert (session.agent["name"], session.agent["model_name"]) == ("terminus-2", "openai/stub")
    assert (session.verdict.outcome, session.verdict.rewards) == (SessionOutcome.SOLVED, {"reward": 1.0})
    assert session.verdict.output == "3 passed\n"
    assert session.usage == SessionUsage(30, 9, 4, 0.5, 12.5)
    assert session.metadata["result.trial_name"] == "count-lines__solved1"
    assert session.steps[1]["observation"]["results"][0]["content"] == "3 /app/a.txt"


@pytest.mark.parametrize(
    ("trial", "outcome", "is_valid"),
    [
        ("timeout", SessionOutcome.FAILED, True),
        ("machine", SessionOutcome.ERROR, False),
        ("running", SessionOutcome.UNKNOWN, False),
    ],
)
def test_an_error_of_the_machine_is_no_failure(trial: str, outcome: SessionOutcome, is_valid: bool) -> None:
    [session] = trials()[trial]
    assert (session.verdict.outcome, session.verdict.is_valid) == (outcome, is_valid)


@pytest.mark.parametrize("reward", ["NaN", "null", '"high"', "1e999"])
def test_a_reward_that_is_no_number_decides_nothing_and_is_in_the_account(reward: str) -> None:
    folder = golden("harbor")
    files = {name: folder.open(name).read() for name in folder.names if "solved1" in name}
    name = next(name for name in files if name.endswith("solved1/result.json"))
    result = json.loads(files[name])
    result["verifier_result"] = {"rewards": {"reward": 0, "style": 0.3}}
    files[name] = json.dumps(result).replace('"reward": 0', f'"reward": {reward}').encode()
    [document] = documents(packed(files)).values()
    assert document.reading, document.refused
    verdict = document.reading.sessions[0].verdict
    assert (verdict.outcome, verdict.rewards) == (SessionOutcome.UNKNOWN, {"style": 0.3})
    assert becomes(document)["result.verifier_result.rewards.reward"] == "ignored: it is no number"


def test_the_exception_is_named() -> None:
    assert trials()["timeout"][0].verdict.exception == "AgentTimeoutError: Agent execution timed out after 900 seconds"


def test_attempts_at_a_task_share_its_group() -> None:
    assert {trials()[name][0].origin.group for name in ("solved1", "timeout", "machine")} == {"tests/count-lines"}


def test_a_trial_without_a_trajectory_is_counted() -> None:
    found = documents(golden("harbor"))["first/count-lines__oracle0"].reading
    assert found and (found.without_trajectory, list(found.sessions)) == (1, [])


def test_continuations_and_subagents_are_sessions_below_the_trial() -> None:
    [session] = trials()["resumed"]
    assert session.verdict.outcome == SessionOutcome.SOLVED  # every reward of reward.json is 1
    summary, continued = session.subagents
    assert summary.steps[-1]["message"] == "A summary."
    assert continued.agent_steps() == [1]
    assert continued.verdict.outcome == SessionOutcome.SOLVED


def test_each_step_of_a_task_is_a_session_with_its_own_verdict() -> None:
    found = {session.origin.group: session.verdict.outcome for session in trials()["twostep"]}
    assert found == {"tests/count-lines/write": SessionOutcome.SOLVED, "tests/count-lines/test": SessionOutcome.FAILED}


def test_every_field_and_file_has_an_account() -> None:
    folder = golden("harbor")
    account = becomes(documents(folder)["first/count-lines__solved1"])
    assert account["result.task_name"] == "task"
    assert account["result.source"] == "metadata"
    assert account["trajectory.steps"] == "steps"
    assert folder.became.keys() == set(folder.names)
    assert folder.became["first/result.json"] == "ignored: the trials have it"
    assert folder.became["first/count-lines__solved1/agent/trajectory.json"] == "Harbor trial: trajectory"


@pytest.mark.parametrize("result", [b"{", b"[" * 3000, b"[" + b"[]," * 600_000 + b"[]]"])
def test_a_damaged_trial_is_refused_by_its_name_and_others_are_read(result: bytes) -> None:
    files = {"a/config.json": b"{}", "a/trial.log": b"", "a/result.json": result, "b.jsonl": b'{"messages": []}\n'}
    found = documents(packed(files))
    assert found["a"].refused.startswith("a/result.json is not JSON")
    assert found["b.jsonl:1"].row


def test_characters_that_no_database_stores_are_replaced_and_counted() -> None:
    result = b'{"task_name": "t", "trial_name": "half \\ud800"}'
    steps = b'[{"step_id": 1, "source": "user", "message": "nul \\u0000"}]'
    trajectory = b'{"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": ' + steps + b"}"
    files = {"a/config.json": b"{}", "a/result.json": result, "a/agent/trajectory.json": trajectory}
    document = documents(packed(files))["a"]
    assert document.reading
    [session] = document.reading.sessions
    assert session.steps[0]["message"] == "nul \ufffd"
    assert session.metadata["result.trial_name"] == "half \ufffd"
    assert becomes(document)["steps[].message"] == "characters replaced by U+FFFD"
