"""Rates with their uncertainty, also over clusters, several attempts at each task, and samples that few decided."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

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


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts at one task, and how many of them solved it."""

    solved: int
    attempts: int

    @property
    def rate(self) -> float:
        return self.solved / self.attempts


@dataclass(frozen=True, slots=True)
class Pass:
    """A mean over `tasks` of shares from 0 to 1, each for sets of `k` attempts, with its 95 % interval.

    `left_out` are tasks with fewer than `k` attempts, which say nothing about sets of `k`.
    """

    k: int
    value: float
    interval: Interval
    tasks: int
    left_out: int


def pass_at_k(task: Attempts, k: int) -> float:
    """Return the share of sets of `k` attempts of which one is solved, unbiased: 1 − C(n − c, k) / C(n, k).

    M. Chen et al., "Evaluating Large Language Models Trained on Code" (2021), equation 1. Needs `k` attempts.
    """
    return 1 - comb(task.attempts - task.solved, k) / comb(task.attempts, k)


def pass_hat_k(task: Attempts, k: int) -> float:
    """Return the share of sets of `k` attempts of which all are solved, unbiased: C(c, k) / C(n, k).

    S. Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains" (2024), where it is
    written pass^k. Needs `k` attempts.
    """
    return comb(task.solved, k) / comb(task.attempts, k)


def mean_pass_at(tasks: Sequence[Attempts], k: int) -> Pass | None:
    """Return pass@k over tasks, each with the same weight; None if no task has `k` attempts."""
    return _mean([pass_at_k(task, k) for task in tasks if task.attempts >= k], tasks, k)


def mean_pass_hat(tasks: Sequence[Attempts], k: int) -> Pass | None:
    """Return pass^k over tasks, each with the same weight; None if no task has `k` attempts."""
    return _mean([pass_hat_k(task, k) for task in tasks if task.attempts >= k], tasks, k)


def _mean(values: Sequence[float], tasks: Sequence[Attempts], k: int) -> Pass | None:
    if not values:
        return None
    attempts = sum(task.attempts for task in tasks if task.attempts >= k)
    interval = clustered_mean(values, attempts // k)
    return Pass(k, float(np.mean(values)), interval, len(values), len(tasks) - len(values))


def clustered_mean(values: Sequence[float], observations: int) -> Interval:
    """Return the 95 % interval of the mean of shares, one for each cluster, of so many observations in all.

    Wilson's interval of as many independent observations as have the variance of this mean: J. N. K. Rao and A. J.
    Scott, "A simple method for the analysis of clustered binary data", Biometrics 48 (1992). They are no fewer than
    the clusters, and no more than the observations, where the clusters happen to agree.
    """
    count, mean = len(values), float(np.mean(values))
    variance = float(np.var(values, ddof=1)) / count if count > 1 else 0.0
    most = max(count, observations)
    effective = most if variance == 0 else min(most, max(count, mean * (1 - mean) / variance))
    if mean in (0.0, 1.0):  # all clusters agree, and the attempts of one say little about another
        effective = count
    return wilson(mean * effective, effective)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Samples with like scores: `decided` of `samples` by people, who approved `approved` of them."""

    samples: int
    decided: int
    approved: int


@dataclass(frozen=True, slots=True)
class Precision:
    """The share of `samples` that people approve, from 0 to 1, with its 95 % interval.

    It rests on `decided` samples, of which people approved `approved`. `unknown` are undecided samples in strata
    without a decision: nothing says how many of them people would approve. Then `share` is None, and the interval
    allows for none and for all of them. `share` is None too where there is no sample.
    """

    share: float | None
    interval: Interval
    samples: int
    decided: int
    approved: int
    unknown: int


def expected_precision(strata: Sequence[Stratum]) -> Precision:
    """Return the share of approved samples if people decided all of them.

    A stratum's undecided samples are approved at the rate of its decided ones, so that a score of which people have
    seen many samples weighs no more than its samples:

        share = Σ wᵢ pᵢ,  wᵢ = samplesᵢ / Σ samples,  pᵢ = approvedᵢ / decidedᵢ

    The interval combines the Wilson intervals (lᵢ, uᵢ) of the pᵢ by the method of variance estimates recovery (G. Y.
    Zou and A. Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27 (2008)):

        share − √Σ wᵢ² (pᵢ − lᵢ)²  to  share + √Σ wᵢ² (uᵢ − pᵢ)²

    With one stratum it is the Wilson interval.
    """
    strata = [stratum for stratum in strata if stratum.samples]
    samples = sum(stratum.samples for stratum in strata)
    decided = sum(stratum.decided for stratum in strata)
    approved = sum(stratum.approved for stratum in strata)
    unknown = sum(stratum.samples for stratum in strata if not stratum.decided)
    if not decided:
        return Precision(None, Interval(0.0, 1.0), samples, 0, 0, unknown)
    share = below = above = 0.0
    for stratum in strata:
        if stratum.decided:
            weight, rate = stratum.samples / samples, stratum.approved / stratum.decided
            around = wilson(stratum.approved, stratum.decided)
            share += weight * rate
            below += (weight * (rate - around.low)) ** 2
            above += (weight * (around.high - rate)) ** 2
    low = max(0.0, share - math.sqrt(below))
    high = min(1.0, share + math.sqrt(above) + unknown / samples)
    return Precision(None if unknown else min(1.0, share), Interval(low, high), samples, decided, approved, unknown)
