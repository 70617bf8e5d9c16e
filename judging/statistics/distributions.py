"""Tails and quantiles of the normal, Student's t and the binomial distribution: those of SciPy, as Python's floats."""

import math
from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray


@cache
def _special() -> ModuleType:
    # Importing it takes a third of a second and memory in each process, and most need no distribution.
    from scipy import special

    return special


@cache
def _stats() -> ModuleType:
    # A second more, for those who draw audits.
    from scipy import stats

    return stats


def normal_cdf(z: float) -> float:
    return float(_special().ndtr(z))


def normal_quantile(p: float) -> float:
    """Return the z below which a standard normal variable is with the probability p, 0 < p < 1."""
    return float(_special().ndtri(p))


def t_cdf(freedom: float, t: float) -> float:
    return float(_special().stdtr(freedom, t))


def t_quantile(freedom: float, p: float) -> float:
    """Return the t below which Student's t is with the probability p, 0 < p < 1."""
    return float(_special().stdtrit(freedom, p))


def binomial_cdf(count: int, of: int, chance: float) -> float:
    """Return the probability of at most `count` successes, 0 ≤ count ≤ of and 0 < chance < 1."""
    return float(_special().bdtr(count, of, chance))


def binomial_tail(count: int, of: int, chance: float) -> float:
    """Return the probability of at least `count` successes, 0 ≤ count ≤ of and 0 < chance < 1."""
    return float(_special().bdtrc(count - 1, of, chance))


def hypergeometric(count: int, of: int, marked: int, drawn: int) -> float:
    """Return the probability that `count` of `drawn` are marked, where `marked` of `of` are and none is drawn twice."""
    return math.comb(marked, count) * math.comb(of - marked, drawn - count) / math.comb(of, drawn)


def unseen_share(count: int, alpha: float) -> float:
    """Return the largest share q of things of another kind that `count` equal ones do not rule out: (1 − q)ⁿ = α."""
    return 1.0 - float(alpha ** (1 / count))


def hypergeometric_cdf(count: ArrayLike, of: ArrayLike, marked: ArrayLike, drawn: ArrayLike) -> NDArray[np.float64]:
    """Return the probability that at most `count` of `drawn` are marked, where `marked` of `of` are and none is drawn
    twice. Arrays of one shape, or numbers."""
    found: NDArray[np.float64] = np.asarray(_stats().hypergeom.cdf(count, of, marked, drawn), dtype=np.float64)
    return found


def rate_above(count: int, of: int, chance: float) -> float:
    """Return the lowest rate under which at least `count` of `of` have that chance: the lower bound of Clopper and
    Pearson."""
    return float(_special().betaincinv(count, of - count + 1, chance)) if count else 0.0
