"""The difference of two ways to train, over seeds and rows."""

import numpy as np
import pytest
from numpy.typing import NDArray

from judging.statistics.paired import PairedVerdict
from judging.statistics.seeds import difference_over_seeds


def trained(random: np.random.Generator, effect: float, seeds: int = 3, tasks: int = 40) -> NDArray[np.float64]:
    """Differences of right answers: seeds and tasks both vary."""
    of_seeds = random.normal(0, 0.05, (seeds, 1))
    of_tasks = random.normal(0, 0.1, (1, tasks))
    rates = np.clip(0.3 + of_tasks, 0, 1) * np.ones((seeds, 1))
    before = random.random((seeds, tasks)) < rates
    after = random.random((seeds, tasks)) < np.clip(rates + effect + of_seeds, 0, 1)
    differences: NDArray[np.float64] = after.astype(float) - before.astype(float)
    return differences


def test_of_two_ways_that_are_alike_at_most_five_percent_are_called_different() -> None:
    random, tasks = np.random.default_rng(1), [str(number) for number in range(40)]
    found = [difference_over_seeds(trained(random, 0.0), tasks) for _ in range(1000)]
    assert sum(one.p < 0.05 for one in found) <= 50
    assert sum(one.interval.excludes_zero() for one in found) <= 50


def test_the_interval_has_the_true_difference_in_ninety_five_percent() -> None:
    random, tasks = np.random.default_rng(2), [str(number) for number in range(40)]
    found = [difference_over_seeds(trained(random, 0.2), tasks).interval for _ in range(1000)]
    assert sum(one.low <= 0.2 <= one.high for one in found) >= 950


def test_a_large_difference_is_clear_and_a_seed_that_disagrees_leaves_it_open() -> None:
    tasks = [str(number) for number in range(100)]
    agree = np.array([[1.0] * 40 + [0.0] * 60, [1.0] * 42 + [0.0] * 58, [1.0] * 39 + [0.0] * 61])
    clear = difference_over_seeds(agree, tasks)
    assert (
        PairedVerdict.at(clear.p) == PairedVerdict.CLEAR
        and 0.2 < clear.interval.low < clear.delta < clear.interval.high
    )
    disagree = np.array([[1.0] * 40 + [0.0] * 60, [-1.0] * 20 + [0.0] * 80, [1.0] * 39 + [0.0] * 61])
    assert PairedVerdict.at(difference_over_seeds(disagree, tasks).p) == PairedVerdict.NOT_KNOWN


def test_few_differences_within_the_margin_are_equivalent_and_none_of_few_rows_are_not_known() -> None:
    tasks = [str(number) for number in range(400)]
    small = np.zeros((4, 400))
    small[0, 0], small[1, 1] = 1.0, -1.0
    found = difference_over_seeds(small, tasks, margin=0.02)
    assert PairedVerdict.at(found.p, found.equivalence) == PairedVerdict.EQUIVALENT
    none = difference_over_seeds(np.zeros((3, 5)), list("abcde"), margin=0.02)
    assert PairedVerdict.at(none.p, none.equivalence) == PairedVerdict.NOT_KNOWN and not none.interval.excludes_zero()


def test_figures_of_seeds_vary_with_the_seeds_alone() -> None:
    found = difference_over_seeds(np.array([[0.3], [0.4], [0.5]]), [""], margin=0.1)
    assert found.delta == pytest.approx(0.4) and found.interval.low == pytest.approx(0.4 - 4.3027 * 0.1 / 3**0.5, 1e-3)
    same = difference_over_seeds(np.array([[0.3], [0.3]]), [""])
    assert PairedVerdict.at(same.p) == PairedVerdict.NOT_KNOWN


def test_one_seed_says_nothing_of_others() -> None:
    with pytest.raises(ValueError, match="1 seeds"):
        difference_over_seeds(np.ones((1, 3)), list("abc"))
