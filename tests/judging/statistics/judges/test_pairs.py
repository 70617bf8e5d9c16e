"""Judges that are wrong together, on simulated control duels of different difficulty."""

import numpy as np
import pytest
from scipy import stats

from judging.statistics.judges.pairs import pairs_of

PANEL = ("a", "b", "c")


def read(rng: np.random.Generator, duels: int, *, shared: float = 0.0) -> list[tuple[str, dict[str, bool]]]:
    """Judges that are right in nine of ten, or in six of ten of the hard kind; in a share of the duels `b` repeats
    what `a` said, right or wrong."""
    kinds = rng.choice(["fault", "people"], duels)
    chance = np.where(kinds == "fault", 0.9, 0.6)
    right = {judge: rng.random(duels) < chance for judge in PANEL}
    right["b"] = np.where(rng.random(duels) < shared, right["a"], right["b"])
    return [(str(kinds[n]), {judge: bool(right[judge][n]) for judge in PANEL}) for n in range(duels)]


def test_two_judges_that_are_wrong_on_the_same_duels_are_a_pair() -> None:
    wrong = {"a": {0, 1, 2, 3}, "b": {0, 1, 2, 3}, "c": {9, 12}}
    duels = [("fault", {judge: n not in wrong[judge] for judge in PANEL}) for n in range(15)]
    (pair,) = pairs_of(duels, PANEL)
    assert (pair.judges, pair.both, pair.duels) == (("a", "b"), 4, 15)
    # By the other judge, in 13 duels it is right and in 2 wrong: all four of them are among the 13.
    assert pair.p == pytest.approx(3 * stats.hypergeom.sf(3, 13, 4, 4))
    assert pair.expected == pytest.approx(16 / 13)


def test_duels_that_are_hard_for_all_make_no_pair() -> None:
    duels = [("fault", dict.fromkeys(PANEL, n >= 5)) for n in range(20)]
    assert pairs_of(duels, PANEL) == ()


@pytest.mark.parametrize("duels", [30, 100])
def test_sound_judges_are_named_in_at_most_one_of_twenty_panels(duels: int) -> None:
    rng = np.random.default_rng(duels)
    assert sum(bool(pairs_of(read(rng, duels), PANEL)) for _ in range(200)) <= 10


def test_judges_that_read_together_are_named_at_a_hundred_controls() -> None:
    rng = np.random.default_rng(1)
    named = [[pair.judges for pair in pairs_of(read(rng, 100, shared=0.8), PANEL)] for _ in range(40)]
    assert sum(("a", "b") in each for each in named) >= 36
