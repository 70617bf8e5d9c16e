"""The agreement of people on the same samples, beyond chance."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judging.statistics.judges.controls import cohens_kappa
from judging.statistics.judges.readings import Floats
from judging.statistics.rates import Interval, wilson

# With fewer samples an interval covers most of the scale, so no figure is given.
ENOUGH = 10
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Agreement:
    """`value` is κ or α: 1 for full agreement, 0 for that of chance, with its 95 % interval; None where `n` samples are
    too few (`too_few`) or only one value occurs, which says nothing. `same` of the `n` samples have equal values."""

    n: int
    same: int
    value: float | None
    interval: Interval | None

    @property
    def too_few(self) -> bool:
        return self.n < ENOUGH


def pair_agreement(pairs: Sequence[tuple[str, str]]) -> Agreement:
    """Return Cohen's κ of two people's values for the same samples (`judging.statistics.judges.controls`)."""
    same = sum(one == two for one, two in pairs)
    if len(pairs) < ENOUGH:
        return Agreement(len(pairs), same, None, None)
    found = cohens_kappa([one for one, _ in pairs], [two for _, two in pairs])
    return Agreement(len(pairs), same, found.kappa, found.interval)


def group_agreement(units: Sequence[Sequence[str]], *, seed: int = 1) -> Agreement:
    """Return Krippendorff's α of nominal values; each unit has one sample's values, those with fewer than two are left
    out.

    K. Krippendorff, "Content Analysis" (4th ed., 2018), chapter 12: 1 less the observed disagreement over that of
    chance. The interval is the percentile bootstrap over samples: B. Efron and R. Tibshirani, "An Introduction to the
    Bootstrap" (1993).
    """
    paired = [unit for unit in units if len(unit) > 1]
    same = sum(len(set(unit)) == 1 for unit in paired)
    values = sorted({value for unit in paired for value in unit})
    if len(paired) < ENOUGH or len(values) < 2:
        return Agreement(len(paired), same, None, None)
    # Samples with the same values are one row with a weight: there are few different ones.
    patterns = Counter(tuple(Counter(unit)[value] for value in values) for unit in paired)
    rows, weights = np.array(list(patterns), dtype=float), np.array(list(patterns.values()))
    every = weights[np.newaxis].astype(float)
    by_chance = float(_expected(rows, every)[0])
    alpha = 1 - float(_observed(rows, every)[0]) / by_chance
    if same == len(paired):
        # No resample disagrees: what the share of equal samples may be bounds α instead.
        return Agreement(len(paired), same, alpha, Interval(1 - (1 - wilson(same, same).low) / by_chance, 1.0))
    random = np.random.default_rng(seed)
    drawn = random.multinomial(len(paired), weights / weights.sum(), size=RESAMPLES).astype(float)
    expected = _expected(rows, drawn)
    # A resample with one value only says nothing.
    alphas = 1 - _observed(rows, drawn)[expected > 0] / expected[expected > 0]
    low, high = np.percentile(alphas, [2.5, 97.5])
    return Agreement(len(paired), same, alpha, Interval(float(low), float(high)))


def _observed(rows: Floats, weights: Floats) -> Floats:
    """The observed disagreement of each row of `weights`, which say how often each pattern occurs."""
    size = rows.sum(axis=1)
    unequal = (size**2 - (rows**2).sum(axis=1)) / (size - 1)
    found: Floats = (weights @ unequal) / (weights @ size)
    return found


def _expected(rows: Floats, weights: Floats) -> Floats:
    """The disagreement that chance would give."""
    counts = weights @ rows
    total = counts.sum(axis=1)
    found: Floats = (total**2 - (counts**2).sum(axis=1)) / (total * (total - 1))
    return found
