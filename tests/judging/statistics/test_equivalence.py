"""Two one-sided tests against an interval computed by hand, and by simulation."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from judging.statistics.equivalence import PSEUDO, tost
from judging.statistics.paired import PairedVerdict, difference

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
