"""The chart of the share that can be approved unseen."""

from collections.abc import Sequence

from curation.review.guarantees.proof import Point
from curation.web.charts import Figure, axis, color, figure, lines, vertical_line


def share_chart(curve: Sequence[Point], alpha: float) -> Figure:
    """The share of the unseen samples by the tolerated share of errors, both in percent; a line marks the audit's."""
    x = [100 * one.at for one in curve]
    traces = [
        lines("proven", x, [100 * one.proven for one in curve], "%", line={"color": color("chart-1")}),
        lines("expected", x, [100 * one.expected for one in curve], "%", line={"color": color("chart-2")}),
    ]
    return figure(
        traces,
        xaxis=axis("tolerated share of errors α, %", rangemode="tozero", fixedrange=True),
        yaxis=axis("approved unseen, %", range=[-3, 103], fixedrange=True),
        shapes=[vertical_line(100 * alpha, dash="dash")],
    )
