from collections.abc import Sequence

from curation.review.thresholds.pages import WIDTH, ScoreBin
from curation.web.charts import Figure, axis, bars, color, error_bars, figure
from curation.web.text.figures import percent


def approval_chart(bins: Sequence[ScoreBin]) -> Figure:
    """Samples by score and status, and below them the share that people approved, with its intervals."""
    middles = [one.low + WIDTH / 2 for one in bins]
    counts = (
        ("approved", "good", [one.approved for one in bins]),
        ("rejected or to refine", "bad", [one.settled for one in bins]),
        ("pending", "line-strong", [one.pending for one in bins]),
    )
    traces = [
        bars(
            name,
            middles,
            values,
            hover="samples: %{y}, score: about %{x}",
            width=WIDTH * 0.92,
            marker={"color": color(token)},
            customdata=[one.url for one in bins],
        )
        for name, token, values in counts
    ]
    rated = [(one, one.rate, one.interval) for one in bins if one.rate is not None and one.interval is not None]
    rates = [rate for _, rate, _ in rated]
    intervals = [(interval.low, interval.high) for _, _, interval in rated]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "approval rate, 95 %",
            "x": [one.low + WIDTH / 2 for one, _, _ in rated],
            "y": rates,
            "yaxis": "y2",
            "marker": {"size": 7, "color": color("chart-1")},
            "error_y": error_bars(rates, intervals, token="chart-1"),  # noqa: S106 - a colour
            "text": [f"{percent(rate)} ({one.rated_approved:,} of {one.rated:,})" for one, rate, _ in rated],
            "hovertemplate": "%{text}<extra></extra>",
            "customdata": [one.url for one, _, _ in rated],
        }
    )
    return figure(
        traces,
        barmode="stack",
        xaxis=axis("score", range=[0, 100], dtick=10, anchor="y2", fixedrange=True),
        yaxis=axis("samples", rangemode="tozero", domain=[0.42, 1], fixedrange=True),
        yaxis2=axis(
            "approved",
            range=[-0.03, 1.03],
            tickvals=[0, 0.5, 1],
            ticktext=[percent(0), percent(0.5), percent(1)],
            domain=[0, 0.32],
            fixedrange=True,
        ),
    )
