"""Two rollouts of a scenario side by side: where they diverge, and the parts that a blind review hides."""

from typing import Any

import pytest

from curation.projects.access import Access
from curation.projects.models import Role, Scope
from curation.trajectories.models import Trajectory
from curation.trajectories.session.conversation import Exchange
from curation.trajectories.session.shown import shown_as, views_of
from curation.trajectories.session.siblings import Siblings, StepPair, compare_siblings
from curation.web.problems import NotFound
from curation.web.text.transcript import Excerpt, TerminalStep
from tests.factories import called, make_imported, make_project, make_scenario, make_trajectory, make_turns, make_user

pytestmark = pytest.mark.django_db


def siblings(row: Trajectory, **values: Any) -> Siblings:
    """As a viewer sees them, from whom nothing is hidden."""
    access = Access(make_user(), row.project, Role.VIEWER, frozenset({Scope.READ}))
    return compare_siblings(access, row, shown_as(access, row, views_of(row)[0]), **values)


def rows_of(excerpt: Excerpt[StepPair]) -> list[StepPair]:
    return [row for part in excerpt.parts if isinstance(part, tuple) for row in part]


def commands(excerpt: Excerpt[StepPair]) -> list[tuple[str, str]]:
    """The commands of both sides, by step; an ended side has none."""
    return [(typed(row.mine), typed(row.theirs)) for row in rows_of(excerpt)]


def typed(step: TerminalStep | Exchange | None) -> str:
    return str(step.command.html) if isinstance(step, TerminalStep) and step.command else ""


def pair(mine: tuple[str, ...], theirs: tuple[str, ...], **values: Any) -> Siblings:
    scenario = make_scenario(make_project())
    one = make_trajectory(scenario.project, scenario, commands=mine, outputs=())
    make_trajectory(scenario.project, scenario, commands=theirs, outputs=(), sample_index=1, **values)
    return siblings(one)


def test_they_diverge_at_the_first_other_command() -> None:
    found = pair(("ls", "pwd"), ("ls", "id")).comparison
    assert found and found.shared == 2 and found.divergence == "First difference: step 2, another command."
    assert commands(found.rest) == [("pwd", "id"), ("exit", "exit")]


def test_the_same_command_with_another_output_is_a_divergence() -> None:
    turns = make_turns("date", outputs=("Monday\n",))
    found = pair(("date",), ("date",), turns=turns).comparison
    assert found and found.divergence == "First difference: step 1, the same command, another output."


def test_one_may_end_before_the_other() -> None:
    shorter = pair(("ls",), ("ls",), turns=make_turns("ls", terminal="")).comparison
    assert shorter and shorter.divergence == "After 1 step the sibling has ended."
    assert commands(shorter.rest) == [("exit", "")] and rows_of(shorter.rest)[0].theirs is None


def test_equal_sessions_do_not_diverge() -> None:
    same = pair(("ls",), ("ls",)).comparison
    assert same and same.divergence == "Both took the same steps to the end." and same.rest.parts == []


def test_another_orientation_is_the_first_difference() -> None:
    found = pair(("ls",), ("ls",), turns=make_turns("ls", banner="Other news\n")).comparison
    assert found and found.shared == 0 and found.divergence == "The two sessions began with different orientations."


def test_without_siblings_there_is_nothing_to_compare() -> None:
    found = siblings(make_trajectory(make_project()))
    assert found.all == [] and found.comparison is None and found.next is None


def three() -> list[Trajectory]:
    scenario = make_scenario(make_project())
    outcomes = ("solved", "solved", "checker_failed")
    return [
        make_trajectory(scenario.project, scenario, outcome=outcome, sample_index=n)
        for n, outcome in enumerate(outcomes)
    ]


def test_the_default_sibling_has_the_other_verdict() -> None:
    rows = three()
    found = siblings(rows[0])
    assert found.comparison and found.comparison.other.pk == rows[2].pk
    assert [one.outcome for one in found.all] == ["Solved", "Checker failed"]


def test_a_blind_review_compares_with_the_next_one_and_shows_no_outcome() -> None:
    rows = three()
    found = siblings(rows[0], blind=True)
    assert found.comparison and found.comparison.other.pk == rows[1].pk
    assert siblings(rows[2], blind=True).comparison.other.pk == rows[0].pk  # type: ignore[union-attr]
    assert all((one.outcome, one.tone, one.model) == ("", "", "") for one in found.all)


def test_only_siblings_can_be_chosen() -> None:
    rows = three()
    found = siblings(rows[0], other_id=str(rows[1].pk))
    assert found.comparison and found.comparison.other.pk == rows[1].pk
    assert found.next and found.next.pk == rows[2].pk
    with pytest.raises(NotFound):
        siblings(rows[0], other_id=str(make_trajectory(rows[0].project).pk))


def test_a_sibling_of_an_edited_scenario_is_marked() -> None:
    scenario = make_scenario(make_project())
    old = make_trajectory(scenario.project, scenario, bundle_sha256="0" * 64)
    new = make_trajectory(scenario.project, scenario)
    assert [one.is_other_bundle for one in siblings(old).all] == [True]
    assert siblings(new).all[0].is_other_bundle


def test_imported_runs_diverge_at_a_step_whatever_the_machine_was_called() -> None:
    project = make_project()
    one = make_imported(project, called("ls", "root@aef06a978b50:/app# ls"), called("pwd", "/app"), called("id", ""))
    make_imported(project, called("ls", "root@0d1f6a978b51:/app# ls"), called("uname", "Linux"))
    found = siblings(one).comparison
    assert found and found.shared == 3 and found.divergence == "First difference: step 4, another action."
    assert [row.mine.number if row.mine else 0 for row in rows_of(found.rest)] == [4, 5]
    assert [row.theirs.number if row.theirs else 0 for row in rows_of(found.rest)] == [4, 0]


def test_the_same_action_with_another_result_is_a_divergence() -> None:
    project = make_project()
    one = make_imported(project, called("ls", "a.csv"))
    make_imported(project, called("ls", "b.csv"))
    found = siblings(one).comparison
    assert found and found.divergence == "First difference: step 3, the same action, another result."
