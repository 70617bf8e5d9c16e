"""A majority of a panel that reads the duels unlike the rest: for their worth, or for a preference that it shares.

The duels alone do not tell which. Judges of one kind are alike in two ways: their margins are the same, and each two
agree as often as any other two. Judges that share a preference agree more with each other than with the others, and
their margin is another. A judge that errs more often shows as such a minority too.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from judging.statistics.bounds import Floats, RowClusters, jackknife_deviates

# The standard errors at which one of the two, by itself, makes a split; both together do so with less of each. Sound
# judges are no split in two of three panels, and then a minority that is no split need not carry the verdict by itself.
# Chosen by simulation: of smaller ones few sound panels pass, of larger ones too many that collude.
MARGINS, AGREEMENT = 1.2, 1.8
AT_FIVE_PERCENT = 1.645
# Of three judges each must carry the verdict by itself, split or not.
PAIR = 2
# Of so many judges all minorities are tried: 63 of 7, where 13 would have 4,095.
ALL_TRIED = 7


def minorities(count: int) -> list[tuple[int, ...]]:
    """Return the places of each group of fewer than half of so many judges, single ones first; of more than `ALL_TRIED`
    judges each one and each two."""
    most = (count - 1) // 2 if count <= ALL_TRIED else 2
    return [group for size in range(1, most + 1) for group in combinations(range(count), size)]


def _ends(votes: Floats) -> list[tuple[int, ...]]:
    """Return the places of the judges with the lowest margins, and with the highest, in groups of three to fewer than
    half: a majority that shares a preference leaves the others at one end."""
    order = np.argsort(_mean(list(votes))).tolist()
    sizes = range(PAIR + 1, (len(order) + 1) // 2) if len(order) > ALL_TRIED else ()
    return [tuple(sorted(end)) for size in sizes for end in (order[:size], order[-size:])]


def splits(votes: Floats, clusters: RowClusters) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the splits of the judges, as the places on both sides, the larger side first. The `votes` (duels × judges)
    are NaN where a judge did not parse."""
    found = []
    for minority in (*minorities(votes.shape[1]), *_ends(votes)):
        majority = tuple(place for place in range(votes.shape[1]) if place not in minority)
        gap, closer = jackknife_deviates(_contrasts(votes, majority, minority), clusters)
        if len(majority) == PAIR or (gap / MARGINS) ** 2 + (max(closer, 0.0) / AGREEMENT) ** 2 > 1:
            found.append((majority, minority))
    return found


def missing_leans(votes: Floats, clusters: RowClusters) -> bool:
    """Return whether replies are missing where the other judges of the same duels prefer the opponent, at 5 %.

    Without them the rest looks better for the challenger than it is.
    """
    products = [
        _product(np.isnan(votes[:, place]), -_mean(list(np.delete(votes, place, axis=1).T)))
        for place in range(votes.shape[1] if votes.shape[1] > 1 else 0)
    ]
    return bool(products) and jackknife_deviates(_mean(products)[:, None], clusters)[0] > AT_FIVE_PERCENT


def wins_where(marked: NDArray[np.bool_], margins: Floats, clusters: RowClusters) -> bool:
    """Return whether the challenger wins more of the marked duels than of the others, at 5 %."""
    return jackknife_deviates(_product(marked, margins)[:, None], clusters)[0] > AT_FIVE_PERCENT


def _product(marked: NDArray[np.bool_], values: Floats) -> Floats:
    """Return by duel the product whose mean is the covariance; NaN where the value is not known."""
    known = ~np.isnan(values)
    if not (known & marked).any():
        return np.full(len(values), np.nan)
    product: Floats = (marked - marked[known].mean()) * (values - values[known].mean())
    return product


def _contrasts(votes: Floats, majority: Sequence[int], minority: Sequence[int]) -> Floats:
    """Shape (duels, 2): the difference of both sides' means, and by how much more judges of the majority agree with
    each other than with the minority, as products of standardised votes; NaN where either is not known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.nanstd(votes, axis=0)
        standard = (votes - np.nanmean(votes, axis=0)) / np.where(spread > 0, spread, 1.0)
        within = [standard[:, one] * standard[:, two] for one, two in combinations(majority, 2)]
        between = [standard[:, one] * standard[:, two] for one in majority for two in minority]
        columns = [
            _mean(list(votes[:, majority].T)) - _mean(list(votes[:, minority].T)),
            _mean(within) - _mean(between),
        ]
    return np.stack(columns, axis=1)


def _mean(columns: Sequence[Floats]) -> Floats:
    known = (~np.isnan(columns)).sum(axis=0)
    mean: Floats = np.where(known, np.nansum(columns, axis=0) / np.maximum(known, 1), np.nan)
    return mean
