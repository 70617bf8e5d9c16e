import pytest

from curation.projects.models import Project
from curation.trajectories.models import Pair, StateTrace, StepAdvantage, Trajectory
from curation.trajectories.pairs import NOT_BETTER, OVER_CAP, place_of
from curation.web.problems import Invalid
from sandbox.agent.pairs import NoPairReason
from tests.factories import COMMANDS, make_project, make_run, make_scenario, make_step_value, make_trajectory
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
    assert run.result == {"pairs": 1, "there_already": 0, "left_out": {NoPairReason.INFRA: 1}}


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


class TestAdvantage:
    """Three kept trajectories and three that left before the file was written; a probe has compared one pair."""

    def make(self, verdict: str = "better") -> Project:
        project = make_project()
        scenario = make_scenario(project)
        kept = [make_trajectory(project, scenario) for _ in range(3)]
        rest = [make_trajectory(project, scenario, outcome="checker_failed", commands=COMMANDS[:2]) for _ in range(3)]
        other = make_trajectory(project, scenario, outcome="checker_failed", commands=("ls",), outputs=("",))
        for row in (*kept, *rest, other):
            keys = [f"after {step['message']}" for step in row.text.steps]
            StateTrace.objects.create(trajectory=row, backend="fake", states=keys, keys=keys)
        probe = make_run(project, "probe")
        value, against = make_step_value(kept[0], 3, probe), make_step_value(rest[0], 3, probe, key="", ended=True)
        found = {
            "difference": 0.8,
            "low": 0.4,
            "high": 0.95,
            "verdict": verdict,
            "place": place_of(kept[0], rest[0], 3),
        }
        StepAdvantage.objects.create(value=value, against=against, **found)
        return project

    def test_only_pairs_whose_chosen_action_is_better_are_taken(self) -> None:
        run = run_to_end(self.make(), "pairs", advantage="proven")
        assert run.result == {"pairs": 9, "there_already": 0, "left_out": {NOT_BETTER: 3}}
        labels = Pair.objects.values_list("at", "advantage", "advantage_low", "advantage_high").distinct()
        assert list(labels) == [(3, 0.8, 0.4, 0.95)]

    @pytest.mark.parametrize(
        ("verdict", "wanted", "pairs"),
        [("likely", "proven", 0), ("likely", "likely", 9), ("alike", "likely", 0), ("open", "any", 12)],
    )
    def test_how_sure_it_must_be(self, verdict: str, wanted: str, pairs: int) -> None:
        assert run_to_end(self.make(verdict), "pairs", advantage=wanted).result["pairs"] == pairs

    def test_caps_keep_the_surest(self) -> None:
        run = run_to_end(self.make(), "pairs", per_scenario=4, per_divergence=2)
        assert run.result["left_out"] == {OVER_CAP: 8}
        assert sorted(Pair.objects.values_list("at", "advantage")) == [(1, None), (1, None), (3, 0.8), (3, 0.8)]

    def test_pairs_that_exist_get_the_advantage(self) -> None:
        project = self.make()
        StepAdvantage.objects.update(place="")
        run_to_end(project, "pairs")
        assert not Pair.objects.exclude(advantage=None).exists()
        pair = Pair.objects.filter(at=3).order_by("id")[0]
        StepAdvantage.objects.update(place=place_of(pair.chosen, pair.rejected, pair.at))
        again = run_to_end(project, "pairs")
        assert (again.result["pairs"], again.result["there_already"]) == (0, 12)
        assert Pair.objects.filter(advantage=0.8).count() == 9

    def test_whole_trajectories_have_no_advantage(self) -> None:
        with pytest.raises(Invalid, match="first actions that differ"):
            run_to_end(make_project(), "pairs", advantage="proven", strategy="whole_trajectory")
