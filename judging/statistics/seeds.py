"""Two ways to make a model, each carried out with several seeds: the difference of its results, over seeds and rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judging.statistics.distributions import t_cdf, t_quantile, unseen_share
from judging.statistics.paired_tests import tost
from judging.statistics.rates import Interval

Floats = NDArray[np.float64]
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class SeededDifference:
    """The mean difference in the values' own unit, with its interval at 95 %. `p` is that of no difference,
    `equivalence` that of a difference as large as the margin."""

    delta: float
    interval: Interval
    p: float
    equivalence: float


def difference_over_seeds(differences: Floats, tasks: Sequence[str], *, margin: float = 0.0) -> SeededDifference:
    """Return the mean of `differences`, of the shape (seeds, rows), as one of all seeds and all tasks like these.

    Both are samples: its variance is that of the seeds' means and that of the tasks' means together, which counts what
    varies from row to row within a seed twice, so it is too wide rather than too narrow. The interval and the tests are
    Student's t, with the degrees of freedom of F. E. Satterthwaite, "An approximate distribution of estimates of
    variance components", Biometrics Bulletin 2 (1946). A single column, such as a figure for each seed, varies with the
    seeds alone.

    Args:
        tasks: the cluster of each row.
        margin: a difference as small is none that matters; 0: any matters.

    Raises ValueError for fewer than two seeds, no rows, or another number of tasks.
    """
    seeds, rows = differences.shape
    if seeds < 2 or rows < 1 or rows != len(tasks):
        raise ValueError(f"{seeds} seeds, {rows} rows, {len(tasks)} tasks")
    delta, by_row = float(differences.mean()), differences.mean(axis=0)
    numbers = np.unique(np.asarray(tasks), return_inverse=True)[1]
    sums, sizes = np.bincount(numbers, by_row).astype(np.float64), np.bincount(numbers).astype(np.float64)
    parts = [(float(differences.mean(axis=1).var(ddof=1)) / seeds, seeds - 1)]
    if len(sums) > 1:
        left = sums - sizes * delta
        parts.append((len(sums) / (len(sums) - 1) * float((left**2).sum()) / rows**2, len(sums) - 1))
    variance = sum(part for part, _ in parts)
    spread = max(1.0, float(np.abs(differences).max()))
    by_tasks = tost(sums, sizes, margin=margin, spread=spread) if len(sums) > 1 else 0.0
    if variance < _ROUNDING:
        return _agreeing(delta, spread, min(seeds, len(sums)) if len(sums) > 1 else seeds, by_tasks)
    error = math.sqrt(variance)
    freedom = variance**2 / sum(part**2 / free for part, free in parts)
    half = error * t_quantile(freedom, 0.975)
    equivalence = 1.0
    if margin > 0:
        # Few rows that differ look surer than they are: the stricter test over tasks has to agree.
        equivalence = max(by_tasks, *(t_cdf(freedom, (side * delta - margin) / error) for side in (1, -1)))
    p = 2 * t_cdf(freedom, -abs(delta) / error)
    return SeededDifference(delta, Interval(delta - half, delta + half), p, equivalence)


def _agreeing(delta: float, spread: float, count: int, equivalence: float) -> SeededDifference:
    """Nothing varies: what so few seeds and tasks do not rule out is the interval."""
    other = unseen_share(count, 0.025) * spread
    p = 1.0 if abs(delta) < _ROUNDING else 2.0 ** (1 - count)
    return SeededDifference(delta, Interval(delta - other, delta + other), p, equivalence or 1.0)
