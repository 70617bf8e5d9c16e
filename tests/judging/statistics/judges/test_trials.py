"""Two texts of a judge on duels whose outcome is known."""

import pytest

from judging.statistics.judges.trials import TrialReading, trial


def test_both_texts_are_compared_on_the_duels_that_parsed_under_both() -> None:
    """The first text is right in 10 of 20, the second in 18; a duel that one of them did not parse is in neither."""
    readings = [TrialReading(f"task-{n}", 1, 1 if n % 2 else -1, 1 if n > 1 else -1) for n in range(20)]
    found = trial([*readings, TrialReading("task-x", 1, 1, None), TrialReading("task-y", -1, None, -1)])
    assert (found.known, found.before.n, found.after.n) == (22, 20, 20)
    assert (found.before.accuracy, found.after.accuracy) == (0.5, 0.9)
    assert found.change is not None and found.change.delta == pytest.approx(0.4)
    assert found.change.interval.low > 0 and found.change.p < 0.05
    assert found.after.interval.low < 0.9 < found.after.interval.high


def test_kappa_is_beyond_chance() -> None:
    """A judge that always prefers the challenger, where people do in half of the duels, has κ 0."""
    found = trial([TrialReading(f"task-{n}", 1 if n % 2 else -1, 1, 1 if n % 2 else -1) for n in range(20)])
    assert (found.before.kappa.kappa, found.after.kappa.kappa) == (0.0, 1.0)


def test_duels_of_one_task_say_less_than_duels_of_many() -> None:
    many = trial([TrialReading(f"task-{n}", 1, 1, 1 if n < 15 else -1) for n in range(20)])
    one = trial([TrialReading(f"task-{n // 5}", 1, 1, 1 if n < 15 else -1) for n in range(20)])
    assert many.after.accuracy == one.after.accuracy
    assert one.after.interval.low < many.after.interval.low


def test_nothing_known_says_nothing() -> None:
    found = trial([])
    assert (found.known, found.before.accuracy, found.change) == (0, None, None)
