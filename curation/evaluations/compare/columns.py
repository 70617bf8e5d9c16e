"""One value for each row, so that the mean over rows is a metric; bootstraps and tests need no more.

A ratio and a deviation are no means of rows. Their rows get the linear approximation of the statistic (its influence
function), whose mean is exactly the statistic: B. Efron and R. Tibshirani, "An introduction to the bootstrap" (1993),
chapter 22.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from curation.evaluations.metrics import Metric


def column_of(metric: Metric, rows: Sequence[Mapping[str, float]]) -> list[float] | None:
    """Return the values of a metric, or None if it is not defined: a ratio over nothing, or not reported."""
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
