"""Prompts for reinforcement learning: one of each scenario or task, of the right difficulty."""

import io
from typing import Any

import pyarrow.parquet
import pytest

from curation.projects.models import Project
from curation.trajectories.models import Outcome
from tests.exports.exporting import content, export_of, make_kept, reasons, rows
from tests.factories import make_project, make_scenario, make_trajectory

pytestmark = pytest.mark.django_db(transaction=True)
RECIPE = {"formats": ["rl-prompts"], "near_duplicates": None, "filter": {"status": "approved"}}
FILE = "rl-prompts.train.jsonl"
LOST: dict[str, Any] = {"outcome": Outcome.NO_TERMINAL, "terminal": "", "keep": False}


def played(project: Project, name: str, *, kept: int, lost: int) -> list[int]:
    """A scenario with so many rollouts, of which those that solve it are approved; their samples."""
    scenario = make_scenario(project, name)
    looks = [(f"cat {name}-{number}", "exit") for number in range(kept)]
    made = [
        make_kept(project, scenario, sample_index=number, commands=commands, outputs=("", ""))
        for number, commands in enumerate(looks)
    ]
    for number in range(lost):
        make_trajectory(project, scenario, sample_index=kept + number, **LOST)
    return [row.sample_id or 0 for row in made]


def test_a_scenario_has_one_row_with_its_difficulty_if_its_rewards_differ() -> None:
    project = make_project()
    first, second = played(project, "greet", kept=2, lost=2)
    easy = played(project, "easy", kept=1, lost=0)
    machine = make_scenario(project, "greet-broken")
    broken = make_kept(project, machine, commands=("cat broken", "exit"), outputs=("", ""))
    make_trajectory(project, machine, sample_index=1, outcome=Outcome.INFRA_ERROR, terminal="", keep=False)

    export = export_of(project, RECIPE)
    (row,) = rows(export, FILE)
    assert row["info"] == {"scenario": "greet", "solve_rate": 0.5, "rollouts": 4}
    assert row["task"].startswith("scenario ") and row["answer"] == ""
    assert [message["role"] for message in row["prompt"]] == ["user"]
    assert reasons(export) == {
        str(second): "same_prompt",
        str(easy[0]): "no_solve_rate",
        str(broken.sample_id): "no_solve_rate",
    }
    assert first < second


def test_bounds_take_what_is_neither_too_easy_nor_too_difficult() -> None:
    project = make_project()
    played(project, "greet", kept=1, lost=3)
    played(project, "wave", kept=3, lost=1)
    for bounds, names in (([0.2, 0.5], {"greet"}), ([0.5, 1.0], {"wave"}), ([0.0, 1.0], {"greet", "wave"})):
        found = rows(export_of(project, {**RECIPE, "solve_rate": bounds}), FILE)
        assert {row["info"]["scenario"] for row in found} == names


def test_verl_reads_the_same_prompts() -> None:
    project = make_project()
    played(project, "greet", kept=1, lost=1)
    export = export_of(project, {**RECIPE, "formats": ["verl-rl"]})
    (row,) = pyarrow.parquet.read_table(io.BytesIO(content(export, "verl-rl.train.parquet"))).to_pylist()
    assert row["prompt"][0]["role"] == "user" and row["reward_model"]["style"] == "rule"
    assert row["extra_info"] == {"scenario": "greet", "solve_rate": 0.5, "rollouts": 2}
