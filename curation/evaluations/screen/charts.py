"""Plotly figures of evaluations, drawn by `static/js/charts.js`; colours are the design system's tokens."""

from typing import Any

from curation.evaluations.compare.compare import Comparison
from curation.evaluations.screen.figures import Row
from curation.evaluations.screen.tables import RATES

Figure = dict[str, Any]
SHOWN = ("fmt", "xtr", "exact", "svc", "op_token")
MOST_NAME = 28


def score_chart(rows: list[Row]) -> Figure:
    """Each model's rates side by side, with their Wilson intervals as whiskers."""
    names = [_short(str(row["model"])) for row in rows]
    bars = []
    for place, metric in enumerate(SHOWN, 1):
        ends = [_ends(row, metric) for row in rows]
        values = [100 * float(str(row[metric])) for row in rows]
        bars.append(
            {
                "type": "bar",
                "name": RATES[metric].label,
                "x": names,
                "y": values,
                "marker": {"color": f"var(--chart-{place})"},
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [max(0.0, 100 * high - value) for (_, high), value in zip(ends, values, strict=True)],
                    "arrayminus": [max(0.0, value - 100 * low) for (low, _), value in zip(ends, values, strict=True)],
                    "thickness": 1,
                    "width": 2,
                    "color": "var(--text-2)",
                },
                "hovertemplate": "%{y:.0f} %<extra>" + RATES[metric].label + "</extra>",
            }
        )
    layout = {
        "barmode": "group",
        "bargap": 0.25,
        "yaxis": {"title": {"text": "% of rows"}, "range": [0, 105], "dtick": 20},
        "xaxis": {"type": "category"},
    }
    return {"data": bars, "layout": layout}


def delta_chart(found: Comparison) -> Figure:
    """The change of each rate in points with its 95 % interval, for all rows and for each tier."""
    parts = [
        (f"all {found.scale.unit}", found.metrics),
        *((tier.tier or "no tier", tier.metrics) for tier in found.tiers),
    ]
    lines = []
    for place, (name, metrics) in enumerate(parts):
        shown = [change for change in metrics if change.metric.unit == "share"]
        ends = [change.change.interval for change in shown]
        deltas = [100 * change.change.delta for change in shown]
        lines.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": deltas,
                "y": [change.metric.label for change in shown],
                "marker": {"size": 9 if place == 0 else 6, "color": f"var(--chart-{place % 5 + 1})"},
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [max(0.0, 100 * end.high - value) for end, value in zip(ends, deltas, strict=True)],
                    "arrayminus": [max(0.0, value - 100 * end.low) for end, value in zip(ends, deltas, strict=True)],
                    "thickness": 1.2,
                    "width": 3,
                    "color": f"var(--chart-{place % 5 + 1})",
                },
                # Two parts never lie on one another, and the rest is a click away.
                "visible": True if place == 0 else "legendonly",
                "hovertemplate": "%{x:+.1f} pp<extra>" + name + "</extra>",
            }
        )
    layout = {
        "xaxis": {"title": {"text": "percentage points, after − before"}, "zeroline": True},
        "yaxis": {"type": "category", "autorange": "reversed"},
        "shapes": [
            {
                "type": "line",
                "x0": 0,
                "x1": 0,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"width": 1, "color": "var(--text-2)"},
            }
        ],
    }
    return {"data": lines, "layout": layout}


def _ends(row: Row, metric: str) -> tuple[float, float]:
    intervals = row["intervals"]
    low, high = intervals[metric] if isinstance(intervals, dict) else (0.0, 0.0)
    return float(low), float(high)


def _short(name: str) -> str:
    return name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 1]}…"
