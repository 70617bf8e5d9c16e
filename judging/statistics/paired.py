"""Compares two models on the same rows: the difference with its interval, its tests, and a verdict in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from judging.statistics.distributions import binomial_cdf, normal_cdf, normal_quantile, t_quantile, unseen_share
from judging.statistics.paired_tests import sign_flip, tost
from judging.statistics.rates import Interval

# Draws held in memory at once; two gathered columns of it are about 50 MB.
_DRAWS_AT_ONCE = 2_000_000
# Below this a difference is rounding noise.
_DECIMALS = 12
RESAMPLES = 10_000
LIKELY_BELOW, CLEAR_BELOW = 0.05, 0.01


class PairedVerdict(StrEnum):
    """The verdict that two tests support: that of a difference, and that of none as large as a margin."""

    NOT_KNOWN = "not known"
    EQUIVALENT = "equivalent"
    LIKELY = "likely different"
    CLEAR = "clearly different"

    @classmethod
    def at(cls, p: float, equivalence: float = 1.0) -> "PairedVerdict":
        """`p` is that of no difference, `equivalence` that of a difference as large as the margin (`tost`)."""
        if p < LIKELY_BELOW:
            return cls.CLEAR if p < CLEAR_BELOW else cls.LIKELY
        return cls.EQUIVALENT if equivalence < LIKELY_BELOW else cls.NOT_KNOWN

    @property
    def is_different(self) -> bool:
        return self in (PairedVerdict.LIKELY, PairedVerdict.CLEAR)

    def within(self, margin: str) -> str:
        """The verdict in words, with the margin of an equivalence."""
        return f"{self} within {margin}" if self == PairedVerdict.EQUIVALENT else self.value


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The mean of (after − before) over `rows` pairs in `tasks` clusters, in the values' own unit.

    `interval` is at 95 %. `p` is that of the sign-flip test over tasks, `equivalence` that of two one-sided tests
    (`tost`); `said` is their verdict, if this is the only comparison. `ratio` is the mean square of the tasks'
    differences over their squared mean, infinite without a difference: it says how many tasks a difference like this
    needs.
    """

    delta: float
    interval: Interval
    p: float
    equivalence: float
    ratio: float
    rows: int
    tasks: int

    @property
    def said(self) -> PairedVerdict:
        return PairedVerdict.at(self.p, self.equivalence)

    def tasks_to_be_clear(self, comparisons: int) -> int | None:
        """Return how many tasks a difference of this size and spread needs to be just clear among so many comparisons.

        None without a difference. From the normal approximation of the sign-flip test, n = z² · mean(d²) / mean(d)²;
        no fewer than it needs if all tasks agree, 2 · 0.5ⁿ.
        """
        if not math.isfinite(self.ratio):
            return None
        level = CLEAR_BELOW / max(1, comparisons)
        z = normal_quantile(1 - level / 2)
        return max(math.ceil(z * z * self.ratio), math.floor(math.log2(2 / level)) + 1)


@dataclass(frozen=True, slots=True)
class McNemar:
    """`gained`: pairs that failed before and succeed after; `lost`: the other way; `p` is two-sided and exact."""

    gained: int
    lost: int
    p: float


def mcnemar(before: Sequence[bool], after: Sequence[bool]) -> McNemar:
    """McNemar's test in its exact form: gains against losses are a coin, so p is binomial.

    Q. McNemar, Psychometrika 12 (1947). Rows count one by one, so it decides nothing: `sign_flip` knows of tasks, and
    equals it where every row is a task.
    """
    pairs = list(zip(before, after, strict=True))
    gained = sum(new and not old for old, new in pairs)
    lost = sum(old and not new for old, new in pairs)
    if gained + lost == 0:
        return McNemar(0, 0, 1.0)
    return McNemar(gained, lost, min(1.0, 2 * binomial_cdf(min(gained, lost), gained + lost, 0.5)))


def difference(
    before: Sequence[float],
    after: Sequence[float],
    tasks: Sequence[str],
    *,
    margin: float = 0.0,
    largest: float = 0.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> MeanDifference:
    """The paired bootstrap of the mean difference, rows of one task drawn together.

    Percentile intervals, expanded for few tasks: the tail probability is Φ(−√(n / (n − 1)) · t(α/2, n − 1)), after
    T. Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69 (2015), 3.3.

    Where all tasks agree there is nothing to resample; then a task may still be of another kind with probability q,
    (1 − q)^n = α/2 (for two-sided sign tests the same bound), and the interval reaches as far as such tasks, with
    the opposite or (at a difference of 0) any outcome, would pull the mean.

    Args:
        before, after: one value per row, in the same order.
        tasks: the cluster of each row; an empty name makes a row a cluster of its own.
        margin: a difference as small is none that matters, in the values' own unit; 0: any matters.
        largest: the largest value that a row can have, such as 1 for a share; 0: the largest one here. Rows that are
            all 0 do not tell how large others are.

    Depends on the seed and on the values, not on the order of the rows. Raises ValueError for lengths that differ and
    for no rows at all.
    """
    if not len(before) == len(after) == len(tasks):
        raise ValueError(f"{len(before)} values before, {len(after)} after, {len(tasks)} tasks")
    if not before:
        raise ValueError("no rows to compare")
    sums = _task_sums(before, after, tasks)
    delta = math.fsum(sums[:, 0]) / float(sums[:, 1].sum())
    spread = max(1e-9, largest, max(map(abs, (*before, *after))))
    rates = sums[:, 0] / sums[:, 1]
    if np.allclose(rates, rates[0], rtol=0, atol=10**-_DECIMALS):
        interval = _agreeing(delta, spread, len(sums), 0.05)
    else:
        interval = _percentiles(_means(sums, resamples, seed), len(sums), 0.05)
    own = sums[:, 0].round(_DECIMALS)
    mean = float(own.mean())
    ratio = float((own**2).mean()) / mean**2 if abs(mean) > 10**-_DECIMALS else math.inf
    return MeanDifference(
        delta=round(delta, _DECIMALS) + 0.0,
        interval=interval,
        p=sign_flip(own, seed=seed),
        equivalence=tost(sums[:, 0], sums[:, 1], margin=margin, spread=spread),
        ratio=ratio,
        rows=len(before),
        tasks=len(sums),
    )


def _task_sums(before: Sequence[float], after: Sequence[float], tasks: Sequence[str]) -> NDArray[np.float64]:
    """Shape (tasks, 2): sum of the differences and number of rows, sorted, so that a seeded draw ignores row order."""
    grouped: dict[tuple[str, int], list[float]] = {}
    for place, (old, new, task) in enumerate(zip(before, after, tasks, strict=True)):
        grouped.setdefault((task, 0) if task else ("", place + 1), []).append(new - old)
    return np.array(sorted((math.fsum(values), len(values)) for values in grouped.values()), dtype=np.float64)


def _means(sums: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    count = len(sums)
    rng = np.random.default_rng(seed)
    means = np.empty(resamples, dtype=np.float64)
    step = max(1, _DRAWS_AT_ONCE // count)
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        drawn = rng.integers(0, count, size=(stop - start, count), dtype=np.int32)
        means[start:stop] = sums[drawn, 0].sum(axis=1) / sums[drawn, 1].sum(axis=1)
    return means


def _percentiles(means: NDArray[np.float64], count: int, alpha: float) -> Interval:
    tail = normal_cdf(math.sqrt(count / (count - 1)) * t_quantile(count - 1, alpha / 2))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(round(float(low), _DECIMALS), round(float(high), _DECIMALS))


def _agreeing(delta: float, spread: float, count: int, alpha: float) -> Interval:
    other = unseen_share(count, alpha / 2)
    if abs(delta) < 10**-_DECIMALS:
        return Interval(-other * spread, other * spread)
    pulled = delta * (1 - 2 * other)
    return Interval(min(delta, pulled), max(delta, pulled))
