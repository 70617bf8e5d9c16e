"""Comparisons of judges over the same duels, and their tests."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from judging.statistics.distributions import normal_cdf, normal_quantile, t_cdf
from judging.statistics.judges.readings import Floats, JudgeReadings, PanelReadings


def signed(values: Floats, clusters: NDArray[np.intp]) -> float:
    """Return Student's t of the clusters' sums against 0, as the normal deviate of the same p; 0 where all are 0.

    p is at least that of all signs alike, 2 ** -clusters, which is what sums without any spread prove.
    """
    sums = np.bincount(clusters, np.nan_to_num(values))
    squares, count = float((sums**2).sum()), int(np.count_nonzero(sums))
    if squares < 1e-18 or count < 2:
        return 0.0
    z = float(sums.sum()) / math.sqrt(squares)
    t = abs(z) * math.sqrt((count - 1) / max(count - z * z, 1e-9))
    p = max(t_cdf(count - 1, -t), math.pow(0.5, min(count, 1000)))
    return math.copysign(-normal_quantile(p), z)


def upper(z: float) -> float:
    return normal_cdf(-z)


def majority(ps: Sequence[float]) -> float:
    """Return p against the null that the majority of the comparisons shows nothing (partial conjunction)."""
    needed = len(ps) // 2 + 1
    return min(1.0, (len(ps) - needed + 1) * sorted(ps)[needed - 1])


def two_sided(zs: Sequence[float]) -> float:
    """Return p where the majority must show it in the same direction."""
    return min(1.0, 2 * min(majority([upper(z) for z in zs]), majority([upper(-z) for z in zs])))


def regress(
    judge: JudgeReadings, other: JudgeReadings, panel: PanelReadings, place: Floats | None = None
) -> dict[str, tuple[float, float]]:
    """Return (z, coefficient) of each regressor of the difference of scores, `place` one of them; instances are
    clusters."""
    known = ~np.isnan(judge.score) & ~np.isnan(other.score)
    y = (judge.score - other.score)[known]
    low, high = np.quantile(panel.ratio[known], [0.05, 0.95]) if known.any() else (0.0, 0.0)
    candidates: dict[str, Floats] = {
        "own": judge.own[known],
        "mean": np.ones(len(y)),
        "length": np.asarray(np.clip(panel.ratio[known], low, high), dtype=np.float64),
        "leak": panel.leak[known].astype(np.float64),
        **{f"style {kind}": signs[known] for kind, signs in panel.styles.items()},
        "time": np.asarray(np.linspace(-0.5, 0.5, panel.count)[known], dtype=np.float64),
    }
    if place is not None:
        candidates["place"] = place[known] - (place[known].mean() if known.any() else 0.0)
    chosen: dict[str, Floats] = {}
    for name, column in candidates.items():
        # Where all duels have the same families, the mean is the preference for one of them.
        columns = np.stack([*chosen.values(), column], axis=1)
        if len(y) > len(candidates) + 2 and np.linalg.matrix_rank(columns) == columns.shape[1]:
            chosen[name] = column
    if not chosen:
        return {}
    x = np.stack(list(chosen.values()), axis=1)
    inverse = np.linalg.inv(x.T @ x)
    found = {}
    for at, name in enumerate(chosen):
        weights = x @ inverse[:, at]
        effect = float(weights @ y)
        # The score under the null: what is left of y by all other regressors.
        rest = np.delete(x, at, axis=1)
        left = y - (rest @ np.linalg.lstsq(rest, y, rcond=None)[0] if rest.size else 0.0)
        found[name] = (signed(weights * left, panel.clusters[known]), effect)
    return found


def agreement(one: Floats, two: Floats) -> Floats:
    """Return by duel the product of both standardised scores, whose mean is the correlation; NaN where one misses."""
    known = ~np.isnan(one) & ~np.isnan(two)
    product = np.full(len(one), np.nan)
    spread = one[known].std() * two[known].std() if known.any() else 0.0
    product[known] = (
        0.0 if spread < 1e-12 else (one[known] - one[known].mean()) * (two[known] - two[known].mean()) / spread
    )
    return product


def consistency(judge: JudgeReadings) -> Floats:
    """Return by duel the same between the judge's two orders, averaged over the dimensions."""
    columns = [agreement(judge.sides[:, 0, place], judge.sides[:, 1, place]) for place in range(judge.sides.shape[2])]
    consistency: Floats = np.mean(columns, axis=0)
    return consistency


def usual(values: Floats) -> Floats:
    """Return by duel how often the judge gave its most frequent reply; NaN where nothing was read."""
    rows = values.reshape(len(values), -1, values.shape[-1])
    known = ~np.isnan(rows[:, :, 0])
    if not known.any():
        return np.full(len(values), np.nan)
    # Each of the values is one of -1, -0.5, 0, 0.5 and 1: what was said is a number with base 5.
    codes = (2 * np.nan_to_num(rows) + 2).astype(np.int64) @ 5 ** np.arange(rows.shape[-1])
    often = np.bincount(codes[known])
    usual = codes[known][np.argmax(often[codes[known]] == often.max())]  # of equals, the first
    same = (codes == usual) & known
    with np.errstate(invalid="ignore"):
        shares: Floats = same.sum(axis=1) / known.sum(axis=1)
    return shares


def repeats(judge: JudgeReadings) -> float:
    sides = judge.sides[judge.both]
    return float((sides[:, 0] == sides[:, 1]).mean()) if len(sides) else 0.0
