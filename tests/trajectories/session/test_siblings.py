"""Two rollouts of a scenario beside each other: where they part, and what is not told while blind."""

from typing import Any

import pytest

from curation.trajectories.models import Trajectory
from curation.trajectories.session.siblings import Beside, beside
from curation.trajectories.session.steps import Part
from curation.web.problems import NotFound
from tests.factories import make_project, make_scenario, make_trajectory, make_turns

pytestmark = pytest.mark.django_db


def commands(parts: list[Part]) -> list[str]:
    return [step.command.html for part in parts for step in part.steps if step.command]


def pair(mine: tuple[str, ...], theirs: tuple[str, ...], **values: Any) -> Beside:
    scenario = make_scenario(make_project())
    one = make_trajectory(scenario.project, scenario, commands=mine, outputs=())
    make_trajectory(scenario.project, scenario, commands=theirs, outputs=(), sample_index=1, **values)
    return beside(one)


def test_they_part_at_the_first_other_command() -> None:
    found = pair(("ls", "pwd"), ("ls", "id")).comparison
    assert found and found.shared == 2 and found.said == "Step 2: another command."
    assert commands(found.mine) == ["pwd", "exit"] and commands(found.theirs) == ["id", "exit"]


def test_the_same_command_with_another_output_is_said_so() -> None:
    turns = make_turns("date", outputs=("Monday\n",))
    found = pair(("date",), ("date",), turns=turns).comparison
    assert found and found.said == "Step 1: the same command, another output."


def test_one_may_end_where_the_other_goes_on() -> None:
    shorter = pair(("ls",), ("ls",), turns=make_turns("ls", terminal="")).comparison
    assert shorter and shorter.said == "After 1 step the sibling has ended." and commands(shorter.theirs) == []


def test_equal_ones_are_said_to_be_equal() -> None:
    same = pair(("ls",), ("ls",)).comparison
    assert same and same.said == "Both went the same way to the end." and same.mine == same.theirs == []


def test_another_orientation_is_the_first_difference() -> None:
    found = pair(("ls",), ("ls",), turns=make_turns("ls", banner="Other news\n")).comparison
    assert found and found.shared == 0 and found.said == "They were shown different orientations."


def test_without_siblings_there_is_nothing_to_compare() -> None:
    found = beside(make_trajectory(make_project()))
    assert found.siblings == [] and found.comparison is None and found.following is None


def three() -> list[Trajectory]:
    scenario = make_scenario(make_project())
    outcomes = ("solved", "solved", "checker_failed")
    return [
        make_trajectory(scenario.project, scenario, outcome=outcome, sample_index=n)
        for n, outcome in enumerate(outcomes)
    ]


def test_the_first_choice_is_one_that_ended_otherwise() -> None:
    rows = three()
    found = beside(rows[0])
    assert found.comparison and found.comparison.other.pk == rows[2].pk
    assert [one.outcome for one in found.siblings] == ["Solved", "Checker failed"]


def test_blind_the_choice_is_the_next_one_and_nothing_tells_how_any_ended() -> None:
    rows = three()
    found = beside(rows[0], blind=True)
    assert found.comparison and found.comparison.other.pk == rows[1].pk
    assert beside(rows[2], blind=True).comparison.other.pk == rows[0].pk  # type: ignore[union-attr]
    assert all((one.outcome, one.tone, one.model) == ("", "", "") for one in found.siblings)


def test_any_sibling_can_be_named_and_no_stranger() -> None:
    rows = three()
    found = beside(rows[0], other_id=str(rows[1].pk))
    assert found.comparison and found.comparison.other.pk == rows[1].pk
    assert found.following and found.following.pk == rows[2].pk
    with pytest.raises(NotFound):
        beside(rows[0], other_id=str(make_trajectory(rows[0].project).pk))


def test_a_sibling_of_an_edited_scenario_is_marked() -> None:
    scenario = make_scenario(make_project())
    old = make_trajectory(scenario.project, scenario, bundle_sha256="0" * 64)
    new = make_trajectory(scenario.project, scenario)
    assert [one.other_bundle for one in beside(old).siblings] == [True]
    assert beside(new).siblings[0].other_bundle
