"""Lower confidence bounds of means by a bootstrap of whole clusters."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judging.statistics.distributions import normal_cdf, t_quantile, unseen_share

Floats = NDArray[np.float64]

# Draws at once: so few fit into the processor's cache, and OpenBLAS starts no threads for their product.
_DRAWS_AT_ONCE = 50_000
# With so many clusters of one sum and size they are drawn together, which takes a tenth of the time.
_ALIKE = 10
# Below this a difference is rounding noise, and must not lift a bound of exactly 0 above 0.
DECIMALS = 9
# Points: a duel that is lost in every dimension.
LOWEST = -100.0
# With fewer clusters the lowest resample is not low enough: two of them are both above the mean in a quarter of cases.
FEW_CLUSTERS = 10


@dataclass(frozen=True, slots=True)
class RowClusters:
    """The cluster of each row, as a number from 0, and their kind: `repo`, `instance_id` or `turn`."""

    numbers: NDArray[np.intp]
    count: int
    by: str


def choose_clusters(repos: Sequence[str], instances: Sequence[str]) -> RowClusters:
    """Return the coarser of both groupings that still gives 10 clusters, or the finer one if neither does.

    A row without a repository belongs to its instance; one without either is a cluster of its own.
    """
    groupings = _groupings(repos, instances)
    return next((clusters for clusters in groupings if clusters.count >= FEW_CLUSTERS), groupings[-1])


def coarsest_clusters(repos: Sequence[str], instances: Sequence[str]) -> RowClusters:
    """Return the coarser of both groupings, however few clusters it has."""
    return _groupings(repos, instances)[0]


def _groupings(repos: Sequence[str], instances: Sequence[str]) -> list[RowClusters]:
    alone = [(instance, "") if instance else ("", str(row)) for row, instance in enumerate(instances)]
    groupings = [_numbered(alone, "instance_id" if any(instances) else "turn")]
    if any(repos):
        by_repo = [(repo, "", "") if repo else ("", *own) for repo, own in zip(repos, alone, strict=True)]
        groupings.insert(0, _numbered(by_repo, "repo"))
    return sorted(groupings, key=lambda clusters: clusters.count)  # stable: of equals, the repositories


def every_row(rows: int) -> RowClusters:
    return RowClusters(np.arange(rows), rows, "turn")


def lower_bounds(values: Floats, clusters: RowClusters, *, quantile: float, resamples: int, seed: int) -> list[float]:
    """Return for each column of `values` (rows × columns, NaN for missing) the lower bound of its mean.

    The bound is a quantile of the means of `resamples` resamples of whole clusters, the same ones for all columns. The
    quantile is widened for few clusters to Φ(√(n / (n − 1)) · t(quantile, n − 1)), after T. Hesterberg, "What teachers
    should know about the bootstrap", The American Statistician 69 (2015), 3.3. Below 10 clusters it is at most the
    bound of Student's t with the bootstrap's standard error, and where all are on one side of 0, that of clusters that
    agree.

    Where all clusters agree there is nothing to resample. Then clusters of another kind may still have the share q,
    (1 − q)ⁿ = `quantile`, and the bound is the mean that such ones, with the opposite outcome, would leave. Without a
    lead they are as bad as `values` can be, -100.

    Depends on the seed and on the values, not on the order of the rows. A column without values has the bound NaN.
    """
    present = ~np.isnan(values)
    sums, sizes = (_cluster_sums(column, clusters) for column in (np.where(present, values, 0.0), present * 1.0))
    # Sorted, so that a seeded draw does not depend on the order of rows in the database.
    order = np.lexsort(np.hstack([sums, sizes]).T)
    sums, sizes = sums[order], sizes[order]
    means = _resampled_means(sums, sizes, resamples, seed)
    return [_bound(sums[:, n], sizes[:, n], means[:, n], quantile) for n in range(values.shape[1])]


def jackknife_bounds(values: Floats, clusters: RowClusters, *, quantile: float) -> list[float]:
    """Return for each column of `values` (rows × columns, NaN for missing) a lower bound of its mean that holds for few
    clusters of uneven size: Student's t with the standard error of the means without each cluster.

    That error is the one known as CR3, which is too wide rather than too narrow: J. MacKinnon, M. Nielsen and M. Webb,
    "Leverage, influence, and the jackknife in clustered regression models", The Stata Journal 23 (2023). A column with
    fewer than two clusters has no bound by them, infinity.
    """
    return [
        math.inf if count < 2 else round(mean + t_quantile(count - 1, quantile) * error, DECIMALS)
        for mean, error, count in _jackknife(values, clusters)
    ]


def jackknife_deviates(values: Floats, clusters: RowClusters) -> list[float]:
    """Return the mean of each column in units of the same error, 0 if it has fewer than two clusters."""
    return [
        0.0 if count < 2 or abs(mean) < 10**-DECIMALS else mean / max(error, 10**-DECIMALS)
        for mean, error, count in _jackknife(values, clusters)
    ]


def _jackknife(values: Floats, clusters: RowClusters) -> Iterator[tuple[float, float, int]]:
    """Yield the mean of each column, its standard error and the number of its clusters."""
    present = ~np.isnan(values)
    by_column = (_cluster_sums(column, clusters).T for column in (np.where(present, values, 0.0), present * 1.0))
    for sums, sizes in zip(*by_column, strict=True):
        sums, sizes = sums[sizes > 0], sizes[sizes > 0]
        count = len(sums)
        if count < 2:
            yield 0.0, math.inf, count
            continue
        mean = float(sums.sum() / sizes.sum())
        without = (sums.sum() - sums) / (sizes.sum() - sizes)
        yield mean, math.sqrt((count - 1) / count * float(((without - mean) ** 2).sum())), count


def _numbered(names: Sequence[tuple[str, ...]], by: str) -> RowClusters:
    numbers: dict[tuple[str, ...], int] = {}
    rows = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)
    return RowClusters(rows, len(numbers), by)


def _cluster_sums(values: Floats, clusters: RowClusters) -> Floats:
    columns = [np.bincount(clusters.numbers, column, clusters.count) for column in values.T]
    sums: Floats = np.stack(columns, axis=1).astype(np.float64).round(DECIMALS)
    return sums


def _resampled_means(sums: Floats, sizes: Floats, resamples: int, seed: int) -> Floats:
    """Shape (resamples, columns); NaN where a resample has no row of that column."""
    count, columns = sums.shape
    both = np.hstack([sums, sizes])
    rng = np.random.default_rng(seed)
    kinds, often = np.unique(both, axis=0, return_counts=True)
    if len(kinds) * _ALIKE <= count:
        # Drawing clusters is drawing how many of each kind there are.
        totals = rng.multinomial(count, often / count, size=resamples).astype(np.float64) @ kinds
        return _ratios(totals, columns)
    totals = np.empty((resamples, 2 * columns))
    step = max(1, _DRAWS_AT_ONCE // count)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = rng.integers(0, count, size=(rows, count), dtype=np.int32)
        drawn += np.arange(rows, dtype=np.int32)[:, None] * np.int32(count)
        times = np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count)
        totals[start : start + rows] = times.astype(np.float64) @ both
    return _ratios(totals, columns)


def _ratios(totals: Floats, columns: int) -> Floats:
    with np.errstate(invalid="ignore"):
        found: Floats = totals[:, :columns] / totals[:, columns:]
    return found


def _bound(sums: Floats, sizes: Floats, means: Floats, quantile: float) -> float:
    filled = sizes > 0
    count = int(filled.sum())
    if not count:
        return math.nan
    mean = float(sums.sum() / sizes.sum())
    rates = sums[filled] / sizes[filled]
    if np.allclose(rates, rates[0], rtol=0, atol=10**-DECIMALS):
        return _agreeing(mean, count, quantile)
    drawn = means[~np.isnan(means)]
    spread = math.sqrt(count / (count - 1))
    t = t_quantile(count - 1, quantile)
    bound = float(np.quantile(drawn, normal_cdf(spread * t)))
    if count < FEW_CLUSTERS:
        bound = min(bound, mean + t * spread * float(drawn.std()))
        if (rates > 0).all():
            bound = min(bound, _agreeing(mean, count, quantile))
    return round(bound, DECIMALS)


def _agreeing(mean: float, count: int, quantile: float) -> float:
    other = unseen_share(count, quantile)
    worst = -mean if mean > 10**-DECIMALS else LOWEST
    return round((1 - other) * mean + other * worst, DECIMALS)
