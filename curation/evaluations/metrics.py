"""The metrics of each kind of evaluation: label, unit and direction, for its tables and for comparisons."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType

from curation.evaluations.models import EvaluationKind
from sandbox.agent.reported_task import TIERS


@dataclass(frozen=True, slots=True)
class MetricUnit:
    """How a value and a change of it are written: `scale` times the value, decimals, suffix."""

    scale: float
    decimals: int
    suffix: str
    change_decimals: int
    change_suffix: str

    def number(self, value: float) -> str:
        """Rounded as a figure of the API is, before it is scaled: 0.975 is 97 % everywhere, and not 98 in places."""
        rounded = _rounded(value, self.decimals + round(math.log10(self.scale)))
        return f"{rounded * self.scale:.{self.decimals}f}"

    def amount(self, value: float) -> str:
        return f"{self.number(value)}{self.suffix}"

    def change(self, value: float) -> str:
        """A change that is rounded to nothing has no sign."""
        change = _rounded(value * self.scale, self.change_decimals)
        return f"{change:{'+' if change else ''}.{self.change_decimals}f}{self.change_suffix}"


def _rounded(value: float, decimals: int) -> float:
    """Python writes a small negative number as -0."""
    return round(value, decimals) + 0.0


# Tiers in their own order. A split uses the words of one line.
KNOWN_TIERS = (TIERS, ("trivial", "easy", "medium", "hard", "extreme"), ("low", "mid", "high"))
SHARE = MetricUnit(100, 0, " %", 1, " pp")
SECONDS = MetricUnit(1, 2, " s", 2, " s")
CHARACTERS = MetricUnit(1, 0, "", 0, " chars")
STEPS = MetricUnit(1, 1, "", 1, " steps")
COUNT = MetricUnit(1, 0, "", 0, "")
POINTS = MetricUnit(1, 2, "", 2, "")
FINE_POINTS = MetricUnit(1, 3, "", 3, "")


@dataclass(frozen=True, slots=True)
class Metric:
    """`rate`: true or false for each row, so McNemar's test applies. `better`: 1 if more is better, -1 if less is, 0
    if neither. `by_tier`: also compared tier by tier.

    It is the mean of the rows' values `of` (by default its name), or with `over` the sum of these over the sum of
    `over`, or with `deviation` their population standard deviation. `drop` is the CSS class that hides its column in a
    narrow table: the highest class first.
    """

    name: str
    label: str
    title: str
    unit: MetricUnit = SHARE
    rate: bool = True
    better: int = 1
    by_tier: bool = True
    of: str = ""
    over: str = ""
    deviation: bool = False
    drop: str = ""

    @property
    def decimals(self) -> int:
        """Decimals in files. Shares are small numbers."""
        return 4 if self.unit in (SHARE, FINE_POINTS) else 2


STATIC = (
    Metric("fmt", "Command alone", "The answer is a command and nothing else"),
    Metric("xtr", "Command found", "A command can be extracted"),
    Metric("exact", "Exact command", "The extracted command equals the expected one as a string"),
    Metric("svc", "Same service", "The same service (word 1)", drop="col-2"),
    Metric("op_token", "Same operation", "The same operation (word 2), as the published figures count it"),
    Metric("service_and_op", "Same service and operation", "The same service and operation", drop="col-4"),
    Metric("exact_shell", "Same to a shell", "Equal as a shell reads it, flags in any order", drop="col-3"),
    Metric("lat", "Latency", "Mean seconds per call", SECONDS, rate=False, better=-1, by_tier=False, drop="col-2"),
    Metric(
        "len",
        "Length of the answer",
        "Mean characters of the raw answer",
        CHARACTERS,
        rate=False,
        better=0,
        by_tier=False,
        drop="col-2",
    ),
)
LIVE = (
    Metric("completed", "Tasks completed", "The task was achieved"),
    Metric("max_progress", "Highest progress", "The highest progress of each episode", rate=False),
    Metric("terminal_reward", "Reward of the last step", "Reward of the last step", POINTS, rate=False),
    Metric("total_reward", "Summed reward", "Summed over the episode; it can reward stalling", POINTS, rate=False),
    Metric(
        "reward_std",
        "Spread of the summed reward",
        "Standard deviation of the summed rewards",
        POINTS,
        rate=False,
        better=0,
        of="total_reward",
        deviation=True,
    ),
    Metric(
        "reward_per_step",
        "Reward per step",
        "Summed reward over steps",
        FINE_POINTS,
        rate=False,
        of="total_reward",
        over="steps",
    ),
    Metric("steps", "Steps", "Steps of each episode, completed or not", STEPS, rate=False, better=-1),
    Metric(
        "steps_to_complete",
        "Steps to complete",
        "Steps of the completed episodes",
        STEPS,
        rate=False,
        better=-1,
        of="completed_steps",
        over="completed",
    ),
    Metric("completed_without_hint", "Completed without a hint", "The task was achieved and no hint was used"),
    Metric("hinted", "Episodes with a hint", "A hint was asked for", better=-1),
    Metric(
        "format_failure_rate",
        "Steps without a command",
        "Replies without a command, over steps",
        rate=False,
        better=-1,
        of="format_failures",
        over="steps",
    ),
    Metric(
        "invalid_action_rate",
        "Refused actions",
        "Actions that the server refused, over steps",
        rate=False,
        better=-1,
        of="invalid_actions",
        over="steps",
    ),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """How two models are compared: `decisive` is the metric whose change is a gain or a loss, `noun` the word for a
    pair."""

    metrics: tuple[Metric, ...]
    decisive: str
    noun: str
    gained: str
    lost: str


SCALES: Mapping[str, Scale] = MappingProxyType(
    {
        EvaluationKind.STATIC.value: Scale(STATIC, "exact", "row", "exact now, not before", "exact before, not now"),
        EvaluationKind.LIVE.value: Scale(
            LIVE, "completed", "episode", "completed now, not before", "completed before, not now"
        ),
    }
)


def tier_order(tier: str) -> tuple[int, float, str]:
    """Sort tiers from easy to hard: numbers by value, then the well-known names, then others by name."""
    if tier.isascii() and tier.isdigit():
        return (0, int(tier), "")
    names = [names for names in KNOWN_TIERS if tier.casefold() in names]
    return (1, names[0].index(tier.casefold()), "") if names else (2, 0, tier)


def column_of(metric: Metric, rows: Sequence[Mapping[str, float]]) -> list[float] | None:
    """Return a metric's value of each row, so that their mean is the metric; None if it is not defined: a ratio over
    nothing, or not reported.

    A ratio and a deviation are no means of rows. Their rows get the linear approximation of the statistic (its
    influence function), whose mean is exactly the statistic: B. Efron and R. Tibshirani, "An introduction to the
    bootstrap" (1993), chapter 22.
    """
    if not all((metric.of or metric.name) in row for row in rows):
        return None
    values = [row[metric.of or metric.name] for row in rows]
    if metric.over:
        return _ratio(values, [row[metric.over] for row in rows])
    return _deviation(values) if metric.deviation else values


def _ratio(values: Sequence[float], parts: Sequence[float]) -> list[float] | None:
    part = fmean(parts)
    if part == 0:
        return None
    ratio = fmean(values) / part
    return [ratio + (value - ratio * own) / part for value, own in zip(values, parts, strict=True)]


def _deviation(values: Sequence[float]) -> list[float]:
    mean = fmean(values)
    spread = math.sqrt(fmean((value - mean) ** 2 for value in values))
    if spread == 0:
        return [0.0] * len(values)
    return [spread + ((value - mean) ** 2 - spread**2) / (2 * spread) for value in values]
