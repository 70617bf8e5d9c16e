"""The order of the queue."""

from curation.projects.settings.document import ThresholdSettings
from curation.samples.scores import priority_of, trajectory_priority

EDGES = ThresholdSettings(final=80.0, refined=66.0)


def priority(score: float | None, *, flipped: bool = False, spread: float = 0.0, held: bool = False) -> float:
    return priority_of(score=score, thresholds=EDGES, flipped=flipped, spread=spread, held=held)


def test_the_nearest_edge_counts() -> None:
    assert priority(80.0) == 0.0
    assert priority(79.0) == 1.0
    assert priority(67.5) == 1.5
    assert priority(73.0) == 7.0
    assert priority(100.0) == 20.0
    assert priority(0.0) == 66.0


def test_doubt_brings_a_sample_forward() -> None:
    plain = priority(95.0)
    assert priority(95.0, flipped=True) < plain
    assert priority(95.0, spread=40.0) < priority(95.0, spread=20.0) < plain
    assert priority(95.0, held=True) < priority(95.0, flipped=True)


def test_unparsed_samples_come_last() -> None:
    worst = priority_of(
        score=0.0, thresholds=ThresholdSettings(final=100.0, refined=100.0), flipped=False, spread=0.0, held=False
    )
    assert priority(None, flipped=True, spread=100.0, held=True) > worst


def trajectory(**facts: bool) -> float:
    given = {"keep": False, "machine": False, "looping": False, "passed": False, "differs": False}
    return trajectory_priority(**{**given, **facts})


def test_doubtful_trajectories_come_first_and_failures_of_the_machine_last() -> None:
    kept, rejected = trajectory(keep=True, passed=True), trajectory()
    kept_but_looping = trajectory(keep=True, passed=True, looping=True)
    passed_with_the_wrong_terminal = trajectory(passed=True)
    replayed_otherwise = trajectory(keep=True, passed=True, differs=True)
    doubtful_twice = trajectory(keep=True, passed=True, looping=True, differs=True)
    lost = trajectory(machine=True, passed=True)
    for doubtful in (kept_but_looping, passed_with_the_wrong_terminal, replayed_otherwise):
        assert doubtful_twice < doubtful < kept < rejected < lost
    assert trajectory(looping=True) == rejected  # a rejected one may go round in circles
