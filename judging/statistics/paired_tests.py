"""Tests of paired differences: by sign flips, by two one-sided tests of their smallness, and Holm's correction."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from judging.statistics.distributions import t_cdf

Floats = NDArray[np.float64]
# Sums of whole differences up to this are counted exactly, and all signs of so few tasks.
MOST_EXACT, FEW_TASKS = 1_000, 14
# Beyond, signs are drawn; with so many tasks the sum is normal.
DRAWS, MANY_TASKS = 20_000, 200
# So many draws fit into the processor's cache.
_TOGETHER = 1_000
_ROUNDING = 1e-9


def sign_flip(differences: Floats, *, seed: int = 0) -> float:
    """Return the two-sided p of the hypothesis that each task's difference could as well have the other sign.

    R. A. Fisher, The Design of Experiments (1935), 21. If every difference is -1, 0 or 1, this is McNemar's exact test.
    Exact for differences in whole numbers and for few tasks; otherwise from 20,000 draws, or for many tasks from the
    normal distribution.
    """
    given = np.abs(differences[np.abs(differences) > _ROUNDING])
    total = abs(float(differences.sum()))
    if not len(given) or total < _ROUNDING:
        return 1.0
    whole = given.round()
    if np.allclose(given, whole, rtol=0, atol=_ROUNDING) and whole.sum() <= MOST_EXACT:
        return _counted(whole.astype(np.int64), round(total))
    if len(given) <= FEW_TASKS:
        signs = 1 - 2 * ((np.arange(2 ** len(given))[:, None] >> np.arange(len(given))) & 1)
        return float((np.abs(signs @ given) >= total - _ROUNDING).mean())
    if len(given) > MANY_TASKS:
        return math.erfc(total / math.sqrt(2 * float((given**2).sum())))
    parts = np.split(_drawn_signs(len(given), seed), DRAWS // _TOGETHER)
    beyond = sum(int((np.abs(part.astype(np.float64) @ given) >= total - _ROUNDING).sum()) for part in parts)
    return (beyond + 1) / (DRAWS + 1)


@lru_cache(maxsize=1)
def _drawn_signs(tasks: int, seed: int) -> NDArray[np.int8]:
    """A verdict tests the same tasks without each of its judges."""
    return 1 - 2 * np.random.default_rng(seed).integers(0, 2, size=(DRAWS, tasks), dtype=np.int8)


def holm(ps: Sequence[float]) -> list[float]:
    """Return the p values corrected for their number, in the given order.

    S. Holm, Scandinavian Journal of Statistics 6 (1979): the chance of one false finding among all is at most the
    level, however they depend on each other.
    """
    corrected, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = highest
    return corrected


def _counted(whole: NDArray[np.int64], total: int) -> float:
    """The share of all signs that give a sum as far from 0, by adding the differences one after another."""
    most = int(whole.sum())
    chances = np.zeros(2 * most + 1)
    chances[most] = 1.0
    for size in whole:
        added, chances = chances, np.zeros_like(chances)
        chances[size:] = added[:-size] / 2
        chances[:-size] += added[size:] / 2
    return min(1.0, float(chances[: most - total + 1].sum() + chances[most + total :].sum()))


# Added to each test: as many clusters whose difference is the largest that was seen, against equivalence. Without them
# few that differ, or none, look surer than they are.
PSEUDO = 2


def tost(sums: Floats, sizes: Floats, *, margin: float, spread: float) -> float:
    """Return the p of the hypothesis that the mean of all rows is `margin` or more away from 0.

    D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for assessing the
    equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15 (1987): the larger p of
    two one-sided tests of Student's t, here over clusters, as rows of one depend on each other. Below 0.05 it says that
    the interval of 90 % is within the margin.

    Args:
        sums, sizes: of each cluster, the sum of its rows' differences and their number.
        spread: the largest difference that a row can have, which matters where all clusters agree.
    """
    if margin <= 0 or not len(sums):
        return 1.0
    mean = float(sums.sum() / sizes.sum())
    rates = sums / sizes
    # Clusters of another kind, of which none was seen, may have the share q, (1 - q) ** n = p.
    share = (margin - abs(mean)) / max(spread - abs(mean), margin, _ROUNDING)
    unseen = math.pow(1 - min(1.0, max(0.0, share)), len(sums))
    if np.allclose(rates, rates[0], rtol=0, atol=_ROUNDING):
        return unseen
    worst = float(np.abs(rates).max()) * float(sizes.mean())
    return max(unseen, *(_one_sided(side * sums, sizes, margin, worst) for side in (1, -1)))


def _one_sided(sums: Floats, sizes: Floats, margin: float, worst: float) -> float:
    """The p of the hypothesis that the mean is `margin` or more."""
    sums, sizes = np.append(sums, [worst] * PSEUDO), np.append(sizes, [sizes.mean()] * PSEUDO)
    count, rows = len(sums), float(sizes.sum())
    mean = float(sums.sum()) / rows
    left = sums - mean * sizes
    error = math.sqrt(count / (count - 1) * float((left**2).sum())) / rows
    return t_cdf(count - 1, (mean - margin) / error) if error > 0 else 1.0
