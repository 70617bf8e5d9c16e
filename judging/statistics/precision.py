"""The share that people approve, where they have decided only some of the samples, and not a random choice of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from judging.statistics.rates import Interval, wilson


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
