"""Rates with their uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_Z_95 = 1.959963984540054  # the 0.975 quantile of the standard normal distribution


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, in the unit of the value."""

    low: float
    high: float

    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    def around(self, difference: float) -> str:
        """Return a difference of rates and its interval in percentage points, as a list shows them."""
        return f"{100 * difference:+.0f} ({100 * self.low:+.0f} to {100 * self.high:+.0f})"


def wilson(successes: float, n: float, *, z: float = _Z_95) -> Interval:
    """The Wilson score interval of a rate, as shares from 0 to 1; the whole range if nothing was counted.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). `z` 1.96 is
    95 %. Unlike p ± z·s it stays inside 0…1 and says something at 0 of n. Raises ValueError for more successes than n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    share = successes / n
    scale = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At the ends the exact bound is 0 or 1; floating point must not pass it by.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if successes == n else min(1.0, middle + half))


def clustered_wilson(clusters: Sequence[tuple[int, int]]) -> Interval:
    """The Wilson interval of a rate whose observations come in clusters of (successes, n), such as the episodes of a
    task.

    n is divided by the design effect, the variance between clusters over that of independent observations: J. N. K. Rao
    and A. J. Scott, "A simple method for the analysis of clustered binary data", Biometrics 48 (1992). Where all
    observations agree there is no variance to compare, and each cluster counts once.
    """
    n = sum(size for _, size in clusters)
    successes = sum(hits for hits, _ in clusters)
    if all(size == 1 for _, size in clusters):
        return wilson(successes, n)
    share, count = successes / n, len(clusters)
    if share in (0.0, 1.0) or count == 1:
        return wilson(share * count, count)
    between = count / (count - 1) * sum((hits - share * size) ** 2 for hits, size in clusters) / n**2
    effect = max(1.0, between * n / (share * (1 - share)))
    return wilson(successes / effect, n / effect)
