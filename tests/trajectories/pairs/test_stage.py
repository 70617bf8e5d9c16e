import pytest

from curation.projects.models import Project
from curation.trajectories.models import Pair, Trajectory
from curation.web.problems import Invalid
from sandbox.agent.pairs import LeftOut
from tests.factories import COMMANDS, make_project, make_scenario, make_trajectory
from tests.trajectories.rolling import run_to_end

pytestmark = pytest.mark.django_db(transaction=True)


def make_siblings(project: Project) -> tuple[Trajectory, Trajectory, Trajectory]:
    """One kept, one that left too early, one that the machine lost."""
    kept = make_trajectory(project)
    early = make_trajectory(project, kept.scenario, outcome="checker_failed", commands=COMMANDS[:2])
    lost = make_trajectory(project, kept.scenario, outcome="infra_error", commands=("ls",), terminal="")
    return kept, early, lost


def test_kept_trajectories_are_paired_with_rejected_ones_of_their_scenario() -> None:
    project = make_project()
    kept, early, _ = make_siblings(project)
    other = make_trajectory(project, outcome="checker_failed", commands=("ls",))  # of another scenario
    run = run_to_end(project, "pairs")
    pair = Pair.objects.get()
    assert (pair.chosen, pair.rejected, pair.scenario) == (kept, early, kept.scenario)
    assert (pair.at, pair.strategy, pair.run, pair.project) == (3, "first_divergence", run, project)
    assert kept.text.steps[pair.at]["message"] == COMMANDS[2]
    assert early.text.steps[pair.at]["message"] == "exit"
    assert other.pairs_as_rejected.count() == 0
    assert run.result == {
        "pairs": 1,
        "there_already": 0,
        "left_out": {LeftOut.INFRA: 1},
    }


def test_pairs_of_whole_trajectories() -> None:
    project = make_project()
    make_siblings(project)
    run_to_end(project, "pairs")
    run_to_end(project, "pairs", strategy="whole_trajectory")
    assert list(Pair.objects.order_by("id").values_list("strategy", "at")) == [
        ("first_divergence", 3),
        ("whole_trajectory", 1),
    ]


def test_a_second_run_adds_no_pair_twice() -> None:
    project = make_project()
    make_siblings(project)
    first, again = run_to_end(project, "pairs"), run_to_end(project, "pairs")
    assert Pair.objects.get().run == first
    assert (again.result["pairs"], again.result["there_already"]) == (0, 1)


def test_a_filter_applies_to_both_sides() -> None:
    project = make_project()
    kept, early, _ = make_siblings(project)
    make_trajectory(project, kept.scenario, outcome="checker_failed", commands=("ls",), model="operator-b")
    run_to_end(project, "pairs", filter={"model": "operator-a"})
    assert Pair.objects.get().rejected == early


def test_scenarios_are_planned_in_batches() -> None:
    project = make_project()
    for _ in range(45):
        scenario = make_scenario(project)
        make_trajectory(project, scenario)
        make_trajectory(project, scenario, outcome="wrong_terminal", commands=(), terminal="panic")
    run = run_to_end(project, "pairs")
    assert (run.items_done, run.result["pairs"]) == (3, 45)
    assert not Pair.objects.exclude(at=1).exists()


def test_an_unknown_filter_is_refused() -> None:
    with pytest.raises(Invalid, match="params.filter.colour"):
        run_to_end(make_project(), "pairs", filter={"colour": "red"})
