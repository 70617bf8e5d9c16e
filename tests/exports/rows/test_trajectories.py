"""Trajectories are exported as sessions, or skipped with a reason."""

from typing import Any

import pytest

from curation.duels.models import Exclusion
from curation.samples.models import Flag
from curation.trajectories.models import Outcome, Trajectory
from curation.trajectories.shell import steps_of
from tests.exports.exporting import NO_METADATA, approve, content, export_of, make_approved, make_kept, reasons, rows
from tests.factories import (
    AXES,
    COMMANDS,
    PROMPT,
    make_project,
    make_scenario,
    make_trajectory,
    make_turns,
    make_user,
    ticket,
)

pytestmark = pytest.mark.django_db(transaction=True)
SFT = {"formats": ["sft-messages"]}
FILE = "sft-messages.train.jsonl"


def shown(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def typed(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_a_session_is_terminal_output_and_typed_commands_and_a_panic_keeps_its_reason() -> None:
    project = make_project()
    make_kept(project)
    make_kept(project, outcome=Outcome.CORRECT_PANIC, terminal="panic the queue is locked")
    export = export_of(project, {**SFT, "near_duplicates": None})
    session, panicked = rows(export, FILE)
    assert session == {
        "messages": [
            shown(f"Work is announced by: todo\n{PROMPT}"),
            typed("todo --help"),
            shown(f"usage: todo\n{PROMPT}"),
            typed("todo"),
            shown(f'write "hello world" to greeting.txt in your home\n{PROMPT}'),
            typed("echo 'hello world' > greeting.txt"),
            shown(PROMPT),
            typed("exit"),
        ]
    }
    assert panicked["messages"][-1] == typed("panic the queue is locked")
    assert reasons(export) == {}


def test_metadata_has_the_source_and_a_score_column_without_a_score() -> None:
    project, user = make_project(), make_user("ada")
    trajectory = make_kept(project, by=user, axes={"provider_asked": "yes"})
    row = rows(export_of(project, {**SFT, "metadata": True}), FILE)[0]
    del row["messages"]
    assert row == NO_METADATA | {
        "id": str(trajectory.sample_id),
        "source": "scenarios",
        "scenario": trajectory.subject,
        "tier": "1",
        "task": "file-edit",
        "provider_asked": "yes",
        "reviewers": ["ada"],
        "outcome": "solved",
        "metadata": {axis: str(value) for axis, value in AXES.items()},
    }


def test_turns_and_sessions_share_a_file() -> None:
    project = make_project()
    make_approved(project)
    make_kept(project)
    make_approved(project)
    export = export_of(project, SFT)
    assert [len(row["messages"]) for row in rows(export, FILE)] == [3, 8, 3]


SKIPPED: list[tuple[dict[str, Any], str]] = [
    ({"outcome": Outcome.CHECKER_FAILED}, "not_kept"),
    ({"outcome": Outcome.WRONG_TERMINAL, "terminal": "panic"}, "not_kept"),
    ({"outcome": Outcome.TIMEOUT, "terminal": ""}, "not_kept"),
    ({"outcome": Outcome.INFRA_ERROR, "terminal": ""}, "infra_error"),
    ({"sample": {"flags": Flag.INFRA}}, "infra_error"),
    ({"bundle_sha256": "0" * 64}, "edited"),
    ({"turns": []}, "bad_turns"),
    ({"turns": make_turns(*COMMANDS, terminal="")}, "bad_turns"),
    ({"turns": [*make_turns("todo"), {"kind": "output", "text": "x"}]}, "bad_turns"),
    ({"turns": make_turns("todo")[1:]}, "bad_turns"),
    ({"turns": make_turns("todo", terminal="ls")}, "bad_turns"),
    ({"turns": make_turns(" \n")}, "no_answer"),
    ({"turns": make_turns("<think>hm</think>ls")}, "thinking"),
    ({"turns": [{"kind": "orientation", "text": " "}, {"kind": "action", "text": "exit"}]}, "empty_prompt"),
    ({"outputs": ("a" * 5_000,)}, "too_long"),
]


def test_skipped_trajectories_are_listed_although_they_are_approved() -> None:
    project, expected = make_project(), {}
    for values, reason in SKIPPED:
        trajectory = make_kept(project, **{name: value for name, value in values.items() if name != "turns"})
        if "turns" in values:
            trajectory.text.steps = steps_of(values["turns"])
            trajectory.text.save()
        expected[str(trajectory.sample_id)] = reason
    export = export_of(project, {**SFT, "max_tokens": 1_000})
    assert reasons(export) == expected
    assert not export.files.exclude(format="").exists()


def test_later_changes_of_the_scenario_skip_its_trajectories() -> None:
    project, user, expected = make_project(), make_user(), {}
    changes = [("status", "draft", "ungated"), ("status", "rejected", "ungated"), ("status", "dry_run", "dry_run")]
    for name, value, reason in [*changes, ("bundle_sha256", "1" * 64, "edited")]:
        scenario = make_scenario(project, f"{name} {value[:8]}")
        expected[str(make_kept(project, scenario, by=user).sample_id)] = reason
        setattr(scenario, name, value)
        scenario.save()
    left = rows(export_of(project, SFT), "excluded.jsonl")
    assert {row["sample"]: row["reason"] for row in left} == expected
    assert all(row["detail"].endswith(".") for row in left)


def test_a_trajectory_needs_the_approval_of_a_person() -> None:
    project, user = make_project(), make_user()
    pending, rejected = make_trajectory(project), make_trajectory(project, sample={"status": "rejected"})
    unlogged = make_trajectory(project, sample={"status": "approved"})
    listed = make_kept(project, make_scenario(project, "mended by hand"), by=user)
    Exclusion.objects.create(project=project, instance_id="mended by hand", reason="used for evaluation")
    gone = make_kept(project, by=user)
    Trajectory.objects.filter(pk=gone.pk).delete()
    assert reasons(export_of(project, SFT)) == {
        str(pending.sample_id): "not_approved",
        str(rejected.sample_id): "rejected",
        str(unlogged.sample_id): "not_approved",
        str(listed.sample_id): "excluded_instance",
        str(gone.sample_id): "no_answer",
    }


def test_trajectories_of_one_scenario_are_in_one_split() -> None:
    project, user = make_project(), make_user()
    scenarios = [make_scenario(project, f"scenario {number}") for number in range(8)]
    for number, scenario in enumerate(scenarios * 3):
        make_kept(project, scenario, by=user, commands=("todo", f"echo {ticket(number)}"))
    export = export_of(project, {**SFT, "splits": {"train": 0.5, "val": 0.5}, "seed": 2})
    splits = {row["sample"]: row["rows"][0]["split"] for row in rows(export, "frozen.jsonl")}
    for scenario in scenarios:
        own = scenario.trajectories.values_list("sample_id", flat=True)
        assert len({splits[str(sample)] for sample in own}) == 1
    assert set(splits.values()) == {"train", "val"}


def test_the_lists_name_trajectories_and_the_manifest_their_model() -> None:
    project = make_project()
    trajectory = make_kept(project, instructions_hash="5" * 64)
    export = export_of(project, SFT)
    entry = rows(export, "frozen.jsonl")[0]
    assert entry["trajectory"] == str(trajectory.pk) and entry["bundle_sha256"] == trajectory.bundle_sha256
    assert b'"side": "operator"' in content(export, "manifest.json") and b"5" * 64 in content(export, "manifest.json")


def test_a_scenario_restored_to_the_version_of_the_rollout_exports_it_again() -> None:
    project, user = make_project(), make_user()
    scenario = make_scenario(project, status="draft")
    trajectory = make_trajectory(project, scenario)
    assert trajectory.sample is not None
    approve(trajectory.sample, by=user)
    assert reasons(export_of(project, SFT)) == {str(trajectory.sample_id): "ungated"}
    scenario.status = "admitted"
    scenario.save()
    assert reasons(export_of(project, SFT)) == {}
