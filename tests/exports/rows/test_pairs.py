"""Pairs of trajectories: which make a preference, and that an export uses the pairs it froze."""

from typing import Any

import orjson
import pytest
from django.test import Client

from curation.exports.models import FrozenPair
from curation.exports.pages.compare import compare
from curation.projects.models import Project
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.scenarios.models import Scenario
from curation.trajectories.models import Outcome, Pair, Strategy, Trajectory
from tests.exports.exporting import (
    approve,
    content,
    drive_export,
    export_of,
    make_approved,
    make_kept,
    make_pair,
    reasons,
    rows,
)
from tests.factories import (
    PROMPT,
    make_bearer,
    make_member,
    make_project,
    make_scenario,
    make_trajectory,
    make_turns,
    make_user,
)

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = {"formats": ["sft-messages", "dpo"]}
FILE = "dpo.train.jsonl"


class Case:
    """A scenario with an approved trajectory and one that failed at its second command."""

    def __init__(self, project: Project | None = None, **failed: Any) -> None:
        self.project = project or make_project()
        self.scenario: Scenario = make_scenario(self.project)
        self.chosen: Trajectory = make_kept(self.project, self.scenario, by=make_user())
        self.rejected = self.failing(**failed)

    def failing(self, **values: Any) -> Trajectory:
        given = {"outcome": Outcome.CHECKER_FAILED, "commands": ("todo --help", "ls"), "outputs": ("usage: todo\n", "")}
        return make_trajectory(self.project, self.scenario, **{**given, **values})


def said(role: str, *contents: str) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for content in contents]


def test_a_first_divergence_has_one_command_on_each_side() -> None:
    case = Case()
    pair = make_pair(case.chosen, case.rejected)
    export = export_of(case.project, {**BOTH, "filter": {"status": "approved"}})
    assert rows(export, FILE) == [
        {
            "prompt": [
                *said("user", f"Work is announced by: todo\n{PROMPT}"),
                *said("assistant", "todo --help"),
                *said("user", f"usage: todo\n{PROMPT}"),
            ],
            "chosen": said("assistant", "todo"),
            "rejected": said("assistant", "ls"),
        }
    ]
    listed = rows(export, "frozen.jsonl")[0]["rows"]
    known = [("sft-messages", "scenarios", None), ("dpo", "scenarios", str(pair.pk))]
    assert [(row["format"], row["source"], row.get("pair")) for row in listed] == known
    assert orjson.loads(content(export, "manifest.json"))["frozen"]["pairs"] == 1


def test_whole_trajectories_begin_after_the_orientation_and_end_with_a_command() -> None:
    case = Case(terminal="", outcome=Outcome.NO_TERMINAL)
    make_pair(case.chosen, case.rejected, Strategy.WHOLE_TRAJECTORY)
    row = rows(export_of(case.project, BOTH), FILE)[0]
    assert row["prompt"] == said("user", f"Work is announced by: todo\n{PROMPT}")
    assert [message["role"] for message in row["chosen"]] == ["assistant", "user"] * 3 + ["assistant"]
    assert [message["content"] for message in row["rejected"]] == ["todo --help", f"usage: todo\n{PROMPT}", "ls"]


def test_a_pending_rejected_trajectory_closes_rows_and_preview_to_a_blind_reviewer(client: Client) -> None:
    case = Case(make_project("billing"))
    make_pair(case.chosen, case.rejected)
    recipe = {"formats": ["dpo"], "sources": ["scenarios"], "filter": {"status": "approved"}}
    export = export_of(case.project, recipe)
    user = make_member(case.project)
    headers = make_bearer(user)
    client.force_login(user)
    form = {"formats": "dpo", "sources": "scenarios", "filter.status": "approved", "group_by": "instance_id"}
    form |= {"train": "1", "seed": "0"}
    listed = rows(export, "frozen.jsonl")[0]["rows"][0]["sha256"]
    path, preview = f"/api/v1/exports/{export.pk}", "/api/v1/projects/billing/exports/preview"
    reads = ["/rows", f"/rows/{listed}", f"/files/{FILE}", "/files/frozen.jsonl", "/preview", "/duplicates"]

    def statuses() -> set[int]:
        return {
            *(client.get(path + read, headers=headers).status_code for read in reads),
            client.post(preview, {"recipe": recipe}, "application/json", headers=headers).status_code,
            client.post("/p/billing/exports/preview/", form).status_code,
            client.get(f"/p/billing/exports/{export.pk}/rows/").status_code,
        }

    assert statuses() == {403}
    refused = client.post(preview, {"recipe": recipe}, "application/json", headers=headers).json()
    assert refused["code"] == "blind" and "the preview" in refused["detail"]
    single = {"recipe": {**recipe, "formats": ["sft-messages"]}}
    assert client.post(preview, single, "application/json", headers=headers).status_code == 200
    assert case.rejected.sample is not None
    case.rejected.sample.status = "rejected"
    case.rejected.sample.save()
    assert statuses() == {200}


def test_a_trajectory_may_win_several_pairs() -> None:
    case = Case()
    others = [case.failing(commands=("todo --help", command)) for command in ("pwd", "id")]
    for rejected in (case.rejected, *others):
        make_pair(case.chosen, rejected)
    make_pair(case.chosen, others[0], Strategy.WHOLE_TRAJECTORY)
    export = export_of(case.project, BOTH)
    assert [row["rejected"][0]["content"] for row in rows(export, FILE)] == ["ls", "pwd", "id", "todo --help"]
    assert export.counts["rows"] == {"sft-messages": {"train": 1}, "dpo": {"train": 4}}
    assert export.counts["exported"] == 1


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.INFRA_ERROR])
def test_an_episode_ended_by_timeout_or_infrastructure_is_never_a_negative(outcome: str) -> None:
    case = Case(outcome=outcome)
    make_pair(case.chosen, case.rejected)
    assert left_of_dpo(case) == "no_negative"


def test_an_approved_trajectory_is_never_a_negative() -> None:
    case = Case()
    make_pair(case.chosen, case.rejected)
    assert case.rejected.sample is not None
    approve(case.rejected.sample, by=make_user())
    assert left_of_dpo(case) == "both_approved"


def test_sides_from_different_bundles_make_no_pair() -> None:
    case = Case(bundle_sha256="0" * 64)
    make_pair(case.chosen, case.rejected)
    assert left_of_dpo(case) == "edited"


@pytest.mark.parametrize(
    ("failed", "at", "reason"),
    [
        ({"outputs": ("Usage: todo\n", "")}, 2, "no_divergence"),  # the terminal showed something else before
        ({}, 1, "no_divergence"),
        ({}, 3, "no_divergence"),
        ({}, 5, "no_divergence"),
        ({}, 40, "no_divergence"),
        ({"commands": ("todo --help", "todo "), "outputs": ("usage: todo\n", "")}, 2, "identical"),
        ({"turns": [{"kind": "orientation", "text": "x"}]}, 1, "bad_turns"),
        ({"turns": make_turns("todo --help", "<think>", outputs=("usage: todo\n", ""))}, 2, "thinking"),
    ],
)
def test_a_pair_that_makes_no_preference_is_listed(failed: dict[str, Any], at: int, reason: str) -> None:
    case = Case(**failed)
    make_pair(case.chosen, case.rejected, at=at)
    assert left_of_dpo(case) == reason


def left_of_dpo(case: Case) -> str:
    """Return why the approved trajectory has no row in `dpo`. It has one in `sft-messages`."""
    export = export_of(case.project, {**BOTH, "filter": {"instance_id": case.scenario.name}})
    assert not export.files.filter(format="dpo").exists()
    assert export.files.filter(format="sft-messages").exists()
    left = [row for row in rows(export, "excluded.jsonl") if row["sample"] == str(case.chosen.sample_id)]
    assert [row["formats"] for row in left] == [["dpo"]]
    return str(left[0]["reason"])


def test_a_trajectory_without_a_pair_is_listed_only_if_the_recipe_wants_pairs() -> None:
    case = Case()
    assert left_of_dpo(case) == "no_pair"
    recipe = {**BOTH, "sources": ["duels"], "filter": {"status": "approved"}}
    assert reasons(export_of(case.project, recipe)) == {}
    assert not FrozenPair.objects.filter(export__recipe__sources=["duels"]).exists()


def test_pairs_created_after_the_freeze_are_part_of_the_next_export() -> None:
    case = Case()
    first = make_pair(case.chosen, case.rejected)
    run = launch(project=case.project, kind="export", params={"recipe": BOTH}, user=None)
    drive(run.pk)
    make_pair(case.chosen, case.failing(commands=("todo --help", "pwd")))
    export = drive_export(run)
    assert len(rows(export, FILE)) == 1
    assert list(FrozenPair.objects.values_list("pair_id", flat=True)) == [first.pk]
    assert len(rows(export_of(case.project, BOTH), FILE)) == 2


def test_a_pair_that_was_deleted_after_the_freeze_is_listed() -> None:
    case = Case()
    make_pair(case.chosen, case.rejected)
    kept = make_pair(case.chosen, case.failing(commands=("todo --help", "pwd")))
    run = launch(project=case.project, kind="export", params={"recipe": BOTH}, user=None)
    drive(run.pk)
    Pair.objects.exclude(pk=kept.pk).delete()
    export = drive_export(run)
    assert [row["rejected"][0]["content"] for row in rows(export, FILE)] == ["pwd"]
    assert reasons(export)[str(case.chosen.sample_id)] == "changed"


def test_the_same_pairs_give_the_same_bytes_and_others_are_added_or_removed_rows() -> None:
    project = make_project()
    make_approved(project)
    cases = [Case(project) for _ in range(3)]
    for case in cases:
        make_pair(case.chosen, case.rejected)
    first, second = export_of(project, BOTH), export_of(project, BOTH)
    assert first.manifest_sha256 == second.manifest_sha256
    make_pair(cases[0].chosen, cases[0].failing(commands=("todo --help", "pwd")))
    third = export_of(project, BOTH)
    found = compare(before=second, after=third)
    assert (found.added, found.removed, found.changed) == (1, 0, 0)
    assert found.rows[0].pair == str(Pair.objects.latest("pk").pk)
