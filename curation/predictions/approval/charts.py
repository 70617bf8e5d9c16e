from collections.abc import Sequence

from curation.predictions.approval.resource import CalibrationOut, ImportanceOut
from curation.web.charts import Figure, axis, bars, color, error_bars, figure
from curation.web.text.figures import percent

SHOWN = 12


def calibration_chart(bins: Sequence[CalibrationOut]) -> Figure:
    """The approved share against the predicted one, with 95 % intervals; on the line they agree."""
    shares = [one.share for one in bins]
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": "approved, 95 %",
        "x": [one.predicted for one in bins],
        "y": shares,
        "marker": {"size": 7, "color": color("chart-1")},
        "error_y": error_bars(shares, [one.interval for one in bins], token="chart-1"),  # noqa: S106 - a colour
        "text": [f"{percent(one.share)} ({one.approved:,} of {one.n:,})" for one in bins],
        "hovertemplate": "%{text}<extra></extra>",
    }
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "as predicted",
        "x": [0, 1],
        "y": [0, 1],
        "line": {"width": 1, "dash": "dot", "color": color("text-2")},
        "hoverinfo": "skip",
    }
    ticks = {"range": [-0.02, 1.02], "tickformat": ".0%", "fixedrange": True}
    return figure([line, points], xaxis=axis("predicted approval", **ticks), yaxis=axis("approved", **ticks))


def importance_chart(importance: Sequence[ImportanceOut]) -> Figure:
    """The facts that move predictions most."""
    shown = list(importance[:SHOWN])[::-1]
    trace = bars(
        "facts",
        [one.change for one in shown],
        [one.fact for one in shown],
        hover="%{x:.2f}",
        orientation="h",
        marker={"color": color("chart-1")},
    )
    return figure(
        [trace],
        xaxis=axis("mean change of the log-odds", rangemode="tozero", fixedrange=True),
        yaxis={"automargin": True, "fixedrange": True},
        showlegend=False,
    )
