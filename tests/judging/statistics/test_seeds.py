"""The difference of two ways to train, over seeds and rows."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from judging.statistics import distributions
from judging.statistics.paired import PairedVerdict, difference
from judging.statistics.paired_tests import PSEUDO, tost
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


def test_the_binomial_distribution_of_few_is_exact() -> None:
    exact = [math.comb(5, count) / 32 for count in range(6)]
    assert [distributions.binomial_cdf(count, 5, 0.5) for count in range(6)] == pytest.approx(
        [sum(exact[: count + 1]) for count in range(6)], rel=1e-14
    )
    assert [distributions.binomial_tail(count, 5, 0.5) for count in range(6)] == pytest.approx(
        [sum(exact[count:]) for count in range(6)], rel=1e-14
    )


def test_none_and_all_are_certain() -> None:
    assert distributions.binomial_tail(0, 7, 0.3) == distributions.binomial_cdf(7, 7, 0.3) == 1.0


def test_what_a_few_equal_ones_do_not_rule_out() -> None:
    assert (1 - distributions.unseen_share(7, 0.05)) ** 7 == pytest.approx(0.05)


ONES = np.ones


def test_equivalence_is_an_interval_of_ninety_per_cent_within_the_margin() -> None:
    values = np.random.default_rng(3).normal(0.01, 0.1, 200)
    p = tost(values, ONES(200), margin=0.05, spread=0.3)
    # Against each side, the largest difference seen counts twice more.
    worst = np.abs(values).max()
    above = stats.ttest_1samp(np.append(values, [worst] * PSEUDO), 0.05, alternative="less").pvalue
    below = stats.ttest_1samp(np.append(values, [-worst] * PSEUDO), -0.05, alternative="greater").pvalue
    assert p == pytest.approx(max(above, below), rel=1e-9) and p < 0.05
    padded = np.append(values, [worst] * PSEUDO)
    high = stats.t.interval(0.9, len(padded) - 1, padded.mean(), stats.sem(padded))[1]
    assert tost(values, ONES(200), margin=float(high), spread=0.3) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("rows", [1, 10, 58, 59, 200])
def test_equal_rows_are_equivalent_from_as_many_as_rule_out_the_margin(rows: int) -> None:
    """(1 - 0.05) ** 59 is just below 0.05."""
    same = difference([1.0] * rows, [1.0] * rows, [""] * rows, margin=0.05)
    assert same.said == (PairedVerdict.EQUIVALENT if rows >= 59 else PairedVerdict.NOT_KNOWN)
    assert same.equivalence == pytest.approx(0.95**rows)


@pytest.mark.parametrize("rows", [20, 58, 59])
def test_nearly_equal_rows_rule_out_no_more_than_equal_ones(rows: int) -> None:
    """One task in ten may have all of the difference, and 20 that were seen none of it."""
    values = np.random.default_rng(rows).normal(0, 0.001, rows)
    assert (tost(values - values.mean(), ONES(rows), margin=0.05, spread=1.0) < 0.05) == (rows == 59)


def test_without_a_margin_nothing_is_equivalent() -> None:
    assert difference([1.0] * 500, [1.0] * 500, [""] * 500).said == PairedVerdict.NOT_KNOWN


@pytest.mark.parametrize("rows", [10, 30, 100, 200])
@pytest.mark.parametrize("gained", [0.0, 0.1])
def test_false_verdicts_are_at_most_one_in_twenty(rows: int, gained: float) -> None:
    """Exactly: the chance of each count of gains and losses, times whether it is called equivalent, or different."""
    margin = 0.1
    at_margin = {
        count: p for count, p in outcomes(rows, gained, gained + margin) if is_equivalent(rows, *count, margin)
    }
    equal = {count: p for count, p in outcomes(rows, 0.1, 0.1) if mcnemar_p(*count) < 0.05}
    assert sum(at_margin.values()) <= 0.05 and sum(equal.values()) <= 0.05
    # With a hundred rows and few that differ, no difference is found to be one that does not matter.
    found = sum(p for count, p in outcomes(rows, 0.01, 0.01) if is_equivalent(rows, *count, margin))
    assert found > 0.9 or rows < 100


def outcomes(rows: int, gained: float, lost: float) -> Iterator[tuple[tuple[int, int], float]]:
    counts = np.array([(up, down, rows - up - down) for up in range(rows + 1) for down in range(rows + 1 - up)])
    chances = stats.multinomial.pmf(counts, rows, [gained, lost, 1 - gained - lost])
    for (up, down, _), p in zip(counts[chances > 1e-5], chances[chances > 1e-5], strict=True):
        yield (int(up), int(down)), float(p)


def is_equivalent(rows: int, gained: int, lost: int, margin: float) -> bool:
    values = np.array([1.0] * gained + [-1.0] * lost + [0.0] * (rows - gained - lost))
    return tost(values, ONES(rows), margin=margin, spread=1.0) < 0.05


def mcnemar_p(gained: int, lost: int) -> float:
    return float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def test_rows_of_one_task_prove_no_more_than_the_task() -> None:
    before, after = [1.0] * 300, [1.0] * 300
    assert difference(before, after, [f"t{n % 10}" for n in range(300)], margin=0.05).said == PairedVerdict.NOT_KNOWN
