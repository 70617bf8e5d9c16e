"""Splits: groups stay together, keep their split, and follow the shares."""

from collections import Counter

import pytest

from curation.exports.recipes.recipe import split_of
from curation.projects.models import Project
from tests.exports.exporting import export_of, make_approved, rows
from tests.factories import make_project, make_user

SHARES = {"train": 0.8, "val": 0.1, "reserve": 0.1}


def test_shares_are_met_over_many_groups() -> None:
    fallen = Counter(split_of(f"task-{number}", seed=1, shares=SHARES) for number in range(20_000))
    assert fallen["train"] == pytest.approx(16_000, rel=0.02)
    assert fallen["val"] == pytest.approx(2_000, rel=0.1) and fallen["reserve"] == pytest.approx(2_000, rel=0.1)


def test_another_seed_draws_other_groups() -> None:
    groups = [f"task-{number}" for number in range(200)]
    assert [split_of(g, seed=1, shares=SHARES) for g in groups] != [split_of(g, seed=2, shares=SHARES) for g in groups]


def test_a_share_of_zero_gets_no_rows() -> None:
    shares = {"train": 0.0, "val": 1.0}
    assert {split_of(str(number), seed=0, shares=shares) for number in range(100)} == {"val"}


@pytest.mark.django_db(transaction=True)
def test_no_instance_is_in_two_splits_and_new_rows_move_none() -> None:
    project, user = make_project(), make_user()
    for number in range(30):
        make_approved(project, by=user, instance_id=f"task-{number % 6}")
    recipe = {"formats": ["sft-messages"], "splits": {"train": 0.5, "val": 0.5}, "seed": 5}
    before = _splits(project, recipe)
    make_approved(project, by=user, instance_id="task-late")
    after = _splits(project, recipe)
    assert after.items() >= before.items()
    by_task: dict[str, set[str]] = {}
    for sample in project.samples.all():
        by_task.setdefault(sample.instance_id, set()).add(after[str(sample.pk)])
    assert all(len(splits) == 1 for splits in by_task.values())
    assert set(after.values()) == {"train", "val"}


@pytest.mark.django_db(transaction=True)
def test_turns_without_an_instance_are_grouped_by_the_row_of_their_source() -> None:
    project, user = make_project(), make_user()
    for row in range(8):
        for turn in range(3):
            sample = make_approved(project, by=user, instance_id="")
            prompt = sample.duel.prompt
            prompt.row_offset, prompt.turn_index = row, turn
            prompt.save()
    splits = list(_splits(project, {"formats": ["dpo"], "splits": {"train": 0.5, "val": 0.5}}).values())
    assert all(len(set(splits[start : start + 3])) == 1 for start in range(0, 24, 3))
    assert set(splits) == {"train", "val"}


def _splits(project: Project, recipe: dict[str, object]) -> dict[str, str]:
    export = export_of(project, recipe)
    return {row["sample"]: row["rows"][0]["split"] for row in rows(export, "frozen.jsonl")}
