"""Tails and quantiles of the normal, Student's t and the binomial distribution.

SciPy has them all and is a fifth of an installation, so only the tests use it, to check these.
"""

import functools
import math
from statistics import NormalDist

_SMALLEST = 1e-300
_STEPS = 10_000


def normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """Return the z below which a standard normal variable is with the probability p, 0 < p < 1."""
    return NormalDist().inv_cdf(p)


def t_cdf(freedom: float, t: float) -> float:
    """Return P(T ≤ t) for Student's t. M. Abramowitz, I. Stegun, *Handbook of Mathematical Functions*, 26.5.27."""
    square = t * t
    tail = 0.5 * _beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square))
    return tail if t < 0 else 1 - tail


@functools.lru_cache(maxsize=1024)
def t_quantile(freedom: float, p: float) -> float:
    """Return the t below which Student's t is with the probability p, 0 < p < 1: by bisection."""
    if p > 0.5:
        return -t_quantile(freedom, 1 - p)
    low, high = -1.0, 0.0
    while t_cdf(freedom, low) > p:
        low, high = 2 * low, low
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_cdf(freedom, middle) < p else (low, middle)
    return high


def binomial_cdf(count: int, of: int, chance: float) -> float:
    """Return the probability of at most `count` successes, 0 ≤ count ≤ of and 0 < chance < 1."""
    return 1.0 if count >= of else _beta(of - count, count + 1, 1 - chance, chance)


def binomial_tail(count: int, of: int, chance: float) -> float:
    """Return the probability of at least `count` successes, 0 ≤ count ≤ of and 0 < chance < 1."""
    return 1.0 if count <= 0 else _beta(count, of - count + 1, chance, 1 - chance)


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b), where `rest` is 1 - x without cancellation.

    By its continued fraction (NIST *Digital Library of Mathematical Functions*, 8.17.22), evaluated forward by the
    modified method of W. Lentz (W. Press and others, *Numerical Recipes*, 5.2).
    """
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, rest, x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    above, below = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = below
    for step in range(1, _STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for numerator in (even, odd):
            below = 1 / _not_zero(1 + numerator * below)
            above = _not_zero(1 + numerator / above)
            found *= below * above
        if abs(below * above - 1) < 1e-15:
            return math.exp(scale) * found / a
    raise ArithmeticError(f"the incomplete beta function of {a}, {b}, {x} does not converge")


def _not_zero(number: float) -> float:
    return number if abs(number) > _SMALLEST else _SMALLEST
