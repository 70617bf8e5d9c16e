import pytest

from curation.projects.settings.document import Balance
from curation.trajectories.models import Trajectory
from curation.trajectories.rollout.balance import terminal_balance
from tests.factories import make_project, make_scenario, make_trajectory

pytestmark = pytest.mark.django_db


def test_shares_are_of_kept_trajectories() -> None:
    project = make_project()
    blocked = make_scenario(project, bundle={"axes": {"task": "blocked"}, "expected_terminal": "panic"})
    empty = make_scenario(project, bundle={"axes": {"task": "empty-queue"}})
    make_trajectory(project, blocked, outcome="correct_panic", terminal="panic no key")
    make_trajectory(project, empty)
    make_trajectory(project)
    make_trajectory(project)
    make_trajectory(project, blocked, outcome="wrong_terminal")
    found = terminal_balance(Trajectory.objects.of(project))
    assert (found.kept, found.exit, found.panic, found.empty_queue, found.blocked) == (4, 0.75, 0.25, 0.25, 0.25)
    assert found.warnings(Balance()) == []
    assert "more than the project's band of 5 % to 20 %" in found.warnings(Balance(panic_high=0.2))[0]
    assert "fewer than the project's band of 30 % to 50 %" in found.warnings(Balance(panic_low=0.3))[0]


def test_without_a_kept_trajectory_there_is_no_warning() -> None:
    assert terminal_balance(Trajectory.objects.of(make_project())).warnings(Balance()) == []
