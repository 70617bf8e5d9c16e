"""Sessions of one scenario, approved and rejected, are a group with rewards."""

import pytest

from curation.projects.models import Project
from curation.trajectories.models import Trajectory
from tests.exports.exporting import approve, export_of, make_approved, reasons, reject, rows
from tests.factories import COMMANDS, make_imported, make_project, make_trajectory, make_user

pytestmark = pytest.mark.django_db(transaction=True)
RECIPE = {"formats": ["rollouts"], "filter": {"status": "approved"}, "near_duplicates": None}
FILE = "rollouts.train.jsonl"


def make_group(project: Project) -> tuple[Trajectory, Trajectory]:
    """One that was solved and approved, and one that failed and was rejected."""
    user = make_user()
    solved = make_trajectory(project)
    failed = make_trajectory(project, solved.scenario, outcome="checker_failed", commands=COMMANDS[:2])
    approve(solved.sample, by=user)
    reject(failed.sample, by=user)
    return solved, failed


def test_a_group_has_its_sessions_with_their_rewards() -> None:
    project = make_project()
    solved, _ = make_group(project)
    export = export_of(project, RECIPE)
    found = rows(export, FILE)
    assert sorted((row["reward"], row["group"]) for row in found) == [
        (0.0, f"scenario {solved.scenario_id}"),
        (1.0, f"scenario {solved.scenario_id}"),
    ]
    best = max(found, key=lambda row: row["reward"])
    assert [message["role"] for message in best["prompt"]] == ["user"]
    assert [message["content"] for message in best["completion"][::2]] == [*COMMANDS, "exit"]
    assert not any("equal rewards" in warning for warning in export.counts["warnings"])


def test_a_group_whose_rewards_are_equal_is_named() -> None:
    project, user = make_project(), make_user()
    make_group(project)
    approve(make_trajectory(project, commands=COMMANDS[1:]).sample, by=user)
    assert any("1 of 2 groups has equal rewards" in one for one in export_of(project, RECIPE).counts["warnings"])


def test_the_reward_of_an_imported_run_is_its_own() -> None:
    project, user = make_project(), make_user()
    approve(make_imported(project, reward=0.25).sample, by=user)
    unknown = make_imported(project, task="another")
    approve(unknown.sample, by=user)
    turn = make_approved(project, by=user)
    export = export_of(project, RECIPE)
    assert [(row["reward"], row["group"]) for row in rows(export, FILE)] == [(0.25, "task sum")]
    assert reasons(export) == {str(unknown.sample_id): "no_reward", str(turn.pk): "no_reward"}


def test_token_ids_that_a_rollout_kept_are_beside_the_messages_unless_they_repeat_a_masked_text() -> None:
    project, user = make_project(), make_user()
    given = {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]}
    for commands in (COMMANDS, ("echo jane.roe@acme-corp.com", "exit")):
        row = make_trajectory(project, commands=commands)
        row.text.steps[1]["metrics"] = given
        row.text.save()
        approve(row.sample, by=user)
    export = export_of(project, {**RECIPE, "formats": ["rollouts", "atif"]})
    kept, masked = rows(export, FILE)
    assert kept["tokens"] == [given, *[None] * len(COMMANDS)]
    assert "acme" not in str(masked["completion"]) and "tokens" not in masked
    kept, masked = rows(export, "atif.train.jsonl")
    assert kept["steps"][1]["metrics"] == given and masked["steps"][1]["metrics"] == {}
