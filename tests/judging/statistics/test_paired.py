"""Intervals and tests of paired rates, against SciPy, by hand, and by simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from judging.statistics.paired import PairedVerdict, difference, mcnemar
from judging.statistics.paired_tests import holm, sign_flip
from judging.statistics.rates import Interval, wilson


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 27), (11, 27), (27, 27), (3, 7), (499, 1000)])
def test_wilson_is_scipys(successes: int, n: int) -> None:
    theirs = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    ours = wilson(successes, n)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilson_of_nothing_is_everything_and_of_too_much_an_error() -> None:
    assert wilson(0, 0) == Interval(0.0, 1.0)
    with pytest.raises(ValueError, match="3 successes of 2"):
        wilson(3, 2)


@pytest.mark.parametrize("share", [0.05, 0.4, 0.9])
def test_wilson_covers_what_it_promises(share: float) -> None:
    """Exactly: the chance of each count times whether its interval holds the true share."""
    n = 60
    covered = sum(stats.binom.pmf(k, n, share) for k in range(n + 1) if wilson(k, n).low <= share <= wilson(k, n).high)
    assert 0.92 <= covered <= 0.99


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (5, 0), (6, 0), (5, 1), (8, 8), (20, 4), (3, 17)])
def test_mcnemar_is_the_binomial_sum(gained: int, lost: int) -> None:
    before = [False] * gained + [True] * lost + [True, False]
    after = [True] * gained + [False] * lost + [True, False]
    n, least = gained + lost, min(gained, lost)
    tail = sum(Fraction(math.comb(n, k), 2**n) for k in range(least + 1))
    found = mcnemar(before, after)
    assert (found.gained, found.lost) == (gained, lost)
    assert found.p == pytest.approx(float(min(Fraction(1), 2 * tail)), abs=1e-12)


def test_mcnemar_keeps_its_level() -> None:
    """Under no effect p is below 0.05 in at most a twentieth of the cases."""
    rng = np.random.default_rng(5)
    below = 0
    for _ in range(1000):
        before, after = rng.random(40) < 0.5, rng.random(40) < 0.5
        below += mcnemar(list(before), list(after)).p < 0.05
    assert below <= 60


def test_the_bootstrap_is_scipys_where_every_row_is_a_task() -> None:
    rng = np.random.default_rng(1)
    before = (rng.random(400) < 0.4).astype(float)
    after = (rng.random(400) < 0.55).astype(float)
    ours = difference(list(before), list(after), [""] * 400)
    theirs = stats.bootstrap((after - before,), np.mean, method="percentile", n_resamples=9999, rng=2)
    assert ours.delta == pytest.approx(float((after - before).mean()))
    assert (ours.interval.low, ours.interval.high) == pytest.approx(theirs.confidence_interval, abs=0.005)
    assert (ours.rows, ours.tasks) == (400, 400)


@pytest.mark.parametrize(("tasks", "per_task"), [(12, 1), (27, 1), (40, 4)])
def test_the_interval_covers_the_true_difference(tasks: int, per_task: int) -> None:
    """Rows of one task share whether they can be solved at all, which an interval over rows would overlook."""
    rng = np.random.default_rng(tasks)
    covered, rounds, gain = 0, 400, 0.15
    names = [str(task) for task in range(tasks) for _ in range(per_task)]
    for _ in range(rounds):
        ability = np.repeat(rng.beta(2, 2, tasks), per_task)
        lifted = np.repeat(rng.random(tasks) < 0.5, per_task)
        before = (rng.random(len(names)) < 0.8 * ability).astype(float)
        after = (rng.random(len(names)) < 0.8 * ability + 2 * gain * lifted * 0.5).astype(float)
        found = difference(list(before), list(after), names, resamples=600)
        covered += found.interval.low <= gain / 2 <= found.interval.high
    assert covered / rounds >= 0.91


def test_tasks_are_drawn_together() -> None:
    """Ten rows of one task say no more than one: the interval is as wide as over the tasks alone."""
    base = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0]
    new = [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    once = difference(base, new, list("abcdef"))
    often = difference(base * 10, new * 10, list("abcdef") * 10)
    assert often.interval == once.interval and (often.rows, often.tasks) == (60, 6)
    loose = difference(base * 10, new * 10, [""] * 60)
    assert loose.interval.high - loose.interval.low < 0.5 * (once.interval.high - once.interval.low)


def test_the_same_rows_in_another_order_give_the_same_interval() -> None:
    rng = np.random.default_rng(3)
    before, after = list(rng.random(50)), list(rng.random(50))
    tasks = [str(number % 11) for number in range(50)]
    order = list(rng.permutation(50))
    shuffled = difference([before[i] for i in order], [after[i] for i in order], [tasks[i] for i in order])
    assert shuffled == difference(before, after, tasks)


def test_agreement_of_few_tasks_proves_little() -> None:
    """If all tasks agree, a sign test needs six of them too."""
    five = difference([0.0] * 5, [1.0] * 5, list("abcde"))
    six = difference([0.0] * 6, [1.0] * 6, list("abcdef"))
    eight = difference([0.0] * 8, [1.0] * 8, list("abcdefgh"))
    assert (five.said, six.said, eight.said) == (PairedVerdict.NOT_KNOWN, PairedVerdict.LIKELY, PairedVerdict.CLEAR)
    assert difference([0.0], [1.0], ["a"]).said == PairedVerdict.NOT_KNOWN
    # Tasks at 0 do not show how far a share can go: 58 of them are too few for 5 points, 59 are enough.
    for tasks, said in ((1, PairedVerdict.NOT_KNOWN), (58, PairedVerdict.NOT_KNOWN), (59, PairedVerdict.EQUIVALENT)):
        zero = [0.0] * tasks
        assert difference(zero, zero, [""] * tasks, margin=0.05, largest=1.0).said == said
    same = difference([1.0, 0.0] * 20, [1.0, 0.0] * 20, [""] * 40)
    assert (same.delta, same.said) == (0.0, PairedVerdict.NOT_KNOWN) and same.interval.high == pytest.approx(
        0.088, abs=0.001
    )


def test_words_come_from_the_interval_and_not_from_points() -> None:
    rng = np.random.default_rng(9)
    noise = (rng.random(20) < 0.5).astype(float)
    other = (rng.random(20) < 0.5).astype(float)
    assert difference(list(noise), list(other), [""] * 20).said == PairedVerdict.NOT_KNOWN
    many = 20_000
    base = (rng.random(many) < 0.50).astype(float)
    small = np.where(rng.random(many) < 0.02, 1.0, base)
    found = difference(list(base), list(small), [""] * many, resamples=500)
    assert found.delta < 0.02 and found.said == PairedVerdict.CLEAR


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="1 values before, 2 after"):
        difference([1.0], [1.0, 0.0], ["a"])
    with pytest.raises(ValueError, match="no rows"):
        difference([], [], [])


def test_the_sign_flip_test_is_mcnemars_where_every_row_is_a_task() -> None:
    for gained, lost in ((0, 0), (1, 0), (6, 0), (5, 1), (20, 4), (3, 17)):
        before = [0.0] * gained + [1.0] * lost + [1.0]
        after = [1.0] * gained + [0.0] * lost + [1.0]
        found = difference(before, after, [""] * len(before), resamples=50)
        assert found.p == pytest.approx(mcnemar([v > 0 for v in before], [v > 0 for v in after]).p, abs=1e-9)


@pytest.mark.parametrize("tasks", [10, 60, 500])
def test_the_sign_flip_test_agrees_with_scipys_permutation_test(tasks: int) -> None:
    rng = np.random.default_rng(tasks)
    sample = rng.normal(2.0 / math.sqrt(tasks), 1.0, tasks)
    theirs = stats.permutation_test(
        (sample,), np.sum, permutation_type="samples", n_resamples=5_000, rng=3, vectorized=True
    )
    assert sign_flip(sample) == pytest.approx(theirs.pvalue, abs=0.02)


def test_holm_is_that_of_statsmodels() -> None:
    """statsmodels 0.15.0: multipletests([0.01, 0.04, 0.03, 0.005], method="holm")[1]."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == [] and holm([0.7, 0.6]) == [1.0, 1.0]


def test_the_missing_tasks_make_the_same_change_clear() -> None:
    """Repeating the same results so often makes the change clear, and a little less often does not."""
    before, after = [0.0] * 6 + [1.0] * 14, [1.0] * 6 + [0.0] * 3 + [1.0] * 11
    needed = difference(before, after, [""] * 20).tasks_to_be_clear(27)
    assert needed is not None and needed > 100
    times = math.ceil(needed / 20)

    def corrected(times: int) -> float:
        return 27 * difference(before * times, after * times, [""] * 20 * times, resamples=50).p

    assert corrected(times + 2) < 0.01 < corrected(times - 3)
    assert difference([1.0], [1.0], ["a"]).tasks_to_be_clear(1) is None
    assert difference([0.0] * 5, [1.0] * 5, list("abcde")).tasks_to_be_clear(1) == 8


@pytest.mark.parametrize(("rounds", "most"), [(30, 5), pytest.param(1000, 63, marks=pytest.mark.slow)])
def test_eleven_equal_models_rarely_give_a_page_with_a_likely_change(rounds: int, most: int) -> None:
    """Ten models against one, five metrics each, rows in tasks: `most` is three standard errors above 5 %."""
    rng = np.random.default_rng(rounds)
    tasks = [str(number // 2) for number in range(54)]
    pages = 0
    for _ in range(rounds):
        ability = np.repeat(rng.beta(2, 2, 27), 2)
        # One strength per row decides all metrics, as for real answers.
        strengths = rng.random((11, 54))
        ps = []
        for metric in (0.6, 0.8, 1.0, 1.2, 1.4):
            right = (strengths < ability * metric).astype(float)
            ps += [difference(list(right[0]), list(other), tasks, resamples=20).p for other in right[1:]]
        pages += min(holm(ps)) < 0.05
    assert pages <= most
