"""Two one-sided tests: whether a mean difference is shown to be smaller than a margin."""

import math

import numpy as np
from numpy.typing import NDArray

from judging.statistics.distributions import t_cdf

Floats = NDArray[np.float64]
_ROUNDING = 1e-9
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
