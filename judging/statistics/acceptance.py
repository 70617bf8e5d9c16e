"""Acceptance of a run: margin and its lower confidence bound by a clustered bootstrap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Draws held in memory at once: 2 million indexes and two gathered columns are about 50 MB.
_DRAWS_AT_ONCE = 2_000_000
# Below this a difference is rounding noise, and must not lift a bound of exactly 0 above 0.
_DECIMALS = 12


@dataclass(frozen=True, slots=True)
class GateSettings:
    """`min_parsed` and `quantile` are shares, `win_margin` is in points, `resamples` a count."""

    min_parsed: float = 0.5
    win_margin: float = 2.0
    resamples: int = 10_000
    seed: int = 0
    quantile: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.min_parsed <= 1 or not 0 < self.quantile < 1 or self.resamples < 1 or self.seed < 0:
            raise ValueError(f"gate settings out of range: {self}")


@dataclass(frozen=True, slots=True)
class GateResult:
    """`margin` in points (-100 to 100); `lcb` and `lcb_unclustered` as shares (-0.5 to 0.5); None if nothing parsed.

    `reasons` says why it is not accepted, one sentence each; empty when accepted.
    """

    margin: float | None
    lcb: float | None
    lcb_unclustered: float | None
    parsed: int
    done: int
    accepted: bool
    reasons: tuple[str, ...]


def acceptance(
    scores: Sequence[float], clusters: Sequence[str], *, done: int, settings: GateSettings | None = None
) -> GateResult:
    """Decide whether the challenger of a run beats its opponent (specification of duels, section 5).

        margin   = 2 x mean(score) - 100
        lcb      = `quantile` of the bootstrapped mean of (score / 100 - 0.5)
        accepted = parsed / done >= min_parsed  and  margin >= win_margin  and  lcb > 0

    Args:
        scores: one per parsed duel, 0 to 100.
        clusters: the instance id of each score. Clusters are drawn with replacement and the mean runs over the turns
            of the drawn clusters. An empty id makes the turn a cluster of its own.
        done: duels of the run that ended, parsed or not.

    The result depends on the seed and the values, not on the order in which they are given. With a single cluster
    there is nothing to resample, so its `lcb` is the plain mean: read it together with `lcb_unclustered`.
    Raises ValueError for lengths that differ, scores outside 0 to 100, or fewer duels done than parsed.
    """
    settings = settings or GateSettings()
    if len(scores) != len(clusters):
        raise ValueError(f"{len(scores)} scores but {len(clusters)} clusters")
    if done < len(scores):
        raise ValueError(f"{done} duels done but {len(scores)} parsed")
    if any(not 0 <= score <= 100 for score in scores):
        raise ValueError("scores must lie between 0 and 100")
    if not scores:
        reason = "no duel was parsed" if done else "no duel was done"
        return GateResult(None, None, None, 0, done, False, (reason,))
    margin = round(2 * math.fsum(score - 50 for score in scores) / len(scores), _DECIMALS)
    lcb = _lower_bound(_cluster_sums(scores, clusters), settings)
    plain = _lower_bound(_cluster_sums(scores, [""] * len(scores)), settings)
    reasons = _objections(len(scores), done, margin, lcb, settings)
    return GateResult(margin, lcb, plain, len(scores), done, not reasons, reasons)


def _objections(parsed: int, done: int, margin: float, lcb: float, settings: GateSettings) -> tuple[str, ...]:
    reasons = []
    if parsed < settings.min_parsed * done:
        reasons.append(f"only {parsed} of {done} duels were parsed, {settings.min_parsed:.0%} are needed")
    if margin < settings.win_margin:
        reasons.append(f"the margin of {margin:.2f} points is below {settings.win_margin:g}")
    if lcb <= 0:
        reasons.append(f"the lower bound {lcb:.4f} is not above 0")
    return tuple(reasons)


def _cluster_sums(scores: Sequence[float], clusters: Sequence[str]) -> NDArray[np.float64]:
    """Return an array of shape (clusters, 2): sum of (score / 100 - 0.5) and number of turns, in sorted order.

    Sorting makes a seeded draw independent of the order of rows in the database.
    """
    grouped: dict[tuple[str, int], list[float]] = {}
    for position, (score, cluster) in enumerate(zip(scores, clusters, strict=True)):
        key = (cluster, 0) if cluster else ("", position + 1)
        grouped.setdefault(key, []).append((score - 50) / 100)
    return np.array(sorted((math.fsum(values), len(values)) for values in grouped.values()), dtype=np.float64)


def _lower_bound(sums: NDArray[np.float64], settings: GateSettings) -> float:
    count = len(sums)
    totals, turns = np.ascontiguousarray(sums[:, 0]), np.ascontiguousarray(sums[:, 1])
    same_size = bool((turns == turns[0]).all())
    rng = np.random.default_rng(settings.seed)
    means = np.empty(settings.resamples, dtype=np.float64)
    step = max(1, _DRAWS_AT_ONCE // count)
    for start in range(0, settings.resamples, step):
        stop = min(start + step, settings.resamples)
        drawn = rng.integers(0, count, size=(stop - start, count), dtype=np.int32)
        size = turns[0] * count if same_size else turns[drawn].sum(axis=1)
        means[start:stop] = totals[drawn].sum(axis=1) / size
    return round(float(np.quantile(means, settings.quantile)), _DECIMALS)
