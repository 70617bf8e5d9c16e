"""The value of an action, the success rate of rollouts that go on after it, and its advantage over another one."""

import math
from dataclasses import dataclass
from enum import StrEnum

from judging.statistics.distributions import normal_quantile
from judging.statistics.rates import Interval, wilson

LEVEL = 0.05
# Two-sided: a difference is likely if this much of the error remains.
LIKELY_LEVEL = 0.2


class ActionVerdict(StrEnum):
    """The result of a comparison of two actions. `LIKELY` is better, but not proven."""

    BETTER = "better"
    WORSE = "worse"
    LIKELY = "likely"
    ALIKE = "alike"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Value:
    """`solved` of `rollouts` that went on after an action were solved. After an action that `ended` the episode none
    can go on: its outcome is its value, `solved` of 1."""

    solved: int
    rollouts: int
    ended: bool = False

    @property
    def rate(self) -> float | None:
        """From 0 to 1; None without a rollout."""
        return self.solved / self.rollouts if self.rollouts else None

    def interval(self, *, level: float = LEVEL, looks: int = 1) -> Interval:
        """Return the Wilson interval of the rate, in which the rate is wrong in at most the share `level`.

        A value that is looked at up to `looks` times, to decide whether more rollouts are needed, has that much of the
        level for each look (C. E. Bonferroni, 1936).
        """
        if self.ended:
            return Interval(float(self.solved), float(self.solved))
        return wilson(self.solved, self.rollouts, z=normal_quantile(1 - level / looks / 2))


@dataclass(frozen=True, slots=True)
class Advantage:
    """How much better one value is than another, from -1 to 1, with its interval."""

    difference: float
    interval: Interval
    verdict: ActionVerdict


def advantage(value: Value, other: Value, *, looks: int = 1, margin: float = 0.2) -> Advantage:
    """Compare two actions. They are alike if the interval of their difference is within ±`margin`.

    The interval combines the Wilson intervals (l, u) of both rates p by the method of R. G. Newcombe, "Interval
    estimation for the difference between independent proportions", Statistics in Medicine 17 (1998), no. 10:

        d − √((p₁ − l₁)² + (u₂ − p₂)²)  to  d + √((u₁ − p₁)² + (p₂ − l₂)²)
    """
    difference, found = _difference(value, other, LEVEL, looks)
    if found.low > 0 or found.high < 0:
        verdict = ActionVerdict.BETTER if found.low > 0 else ActionVerdict.WORSE
    elif -margin <= found.low and found.high <= margin:
        verdict = ActionVerdict.ALIKE
    else:
        verdict = ActionVerdict.LIKELY if _difference(value, other, LIKELY_LEVEL, 1)[1].low > 0 else ActionVerdict.OPEN
    return Advantage(difference, found, verdict)


def _difference(value: Value, other: Value, level: float, looks: int) -> tuple[float, Interval]:
    if value.rate is None or other.rate is None:
        return 0.0, Interval(-1.0, 1.0)
    difference = value.rate - other.rate
    mine, theirs = (side.interval(level=level, looks=looks) for side in (value, other))
    below = math.hypot(value.rate - mine.low, theirs.high - other.rate)
    above = math.hypot(mine.high - value.rate, other.rate - theirs.low)
    return difference, Interval(max(-1.0, difference - below), min(1.0, difference + above))
