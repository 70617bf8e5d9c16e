"""Plotly figures for `static/js/charts.js`. Colours are tokens of the design system, which the browser resolves."""

from collections.abc import Sequence
from typing import Any

Figure = dict[str, Any]
Interval = tuple[float, float]
# The length of a day on an axis of time.
DAY_MS = 86_400_000


def figure(traces: Sequence[Figure], **layout: object) -> Figure:
    return {"data": list(traces), "layout": layout}


def color(token: str) -> str:
    return f"var(--{token})"


def axis(title: str, **options: object) -> Figure:
    return {"title": {"text": title}, **options}


def bars(name: str, x: Sequence[object], y: Sequence[object], *, hover: str = "%{y}", **options: object) -> Figure:
    """A trace of bars; `hover` is Plotly's template for one of them."""
    template = f"{hover}<extra>{name}</extra>"
    return {"type": "bar", "name": name, "x": list(x), "y": list(y), "hovertemplate": template, **options}


def lines(name: str, x: Sequence[object], y: Sequence[object], unit: str, **options: object) -> Figure:
    """A trace of points with lines between them."""
    hover = f"%{{y:.2f}} {unit}<extra>{name}</extra>"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": list(x),
        "y": list(y),
        "hovertemplate": hover,
        **options,
    }


def error_bars(values: Sequence[float], intervals: Sequence[Interval], *, token: str) -> Figure:
    """Whiskers from each value to the ends of its interval, which includes it up to rounding."""
    pairs = list(zip(values, intervals, strict=True))
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, high - value) for value, (_, high) in pairs],
        "arrayminus": [max(0.0, value - low) for value, (low, _) in pairs],
        "thickness": 1,
        "width": 2,
        "color": color(token),
    }


def vertical_line(x: float, **line: object) -> Figure:
    style = {"width": 1, "color": color("text-2"), **line}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": style}
