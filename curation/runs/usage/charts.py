from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from curation.runs.usage.figures import EndpointUsage
from curation.web.charts import Figure, axis, bars, color, figure, lines
from curation.web.text.figures import money

DAY_MS = 86_400_000


def usage_charts(
    days: Sequence[EndpointUsage], urls: Mapping[date, str], first: date, last: date
) -> list[tuple[str, Figure]]:
    """The charts that have something to show, with their titles. A point opens the calls of its day."""
    dates = [day.since.date() for day in days]
    opened: dict[str, Any] = {"customdata": [urls[day] for day in dates]}
    shown = [str(day) for day in dates]

    def chart(traces: Sequence[Figure], title: str) -> Figure:
        span = axis("day", type="date", tickformat="%d %b", range=[str(first), str(last)])
        return figure(
            traces, barmode="stack", showlegend=len(traces) > 1, xaxis=span, yaxis=axis(title, rangemode="tozero")
        )

    def bar(name: str, values: Sequence[float], tone: str, hover: str) -> Figure:
        # Plotly guesses the width from the distance between two bars, so a single day needs one.
        marker = {"color": color(tone)}
        return bars(name, shown, values, hover=hover, width=0.8 * DAY_MS, marker=marker, **opened)

    def line(name: str, values: Sequence[int | None]) -> Figure:
        return lines(name, shown, [None if value is None else value / 1000 for value in values], "seconds", **opened)

    charts = []
    if any(day.cost for day in days):
        cost = bar("cost", [float(day.cost) for day in days], "chart-1", "%{hovertext}")
        cost["hovertext"] = [money(day.cost) for day in days]
        charts.append(("Cost per day", chart([cost], "US dollars")))
    latency = {
        "median": [day.latency_median_ms for day in days],
        "95th percentile": [day.latency_p95_ms for day in days],
        "first token, median": [day.first_token_median_ms for day in days],
    }
    if found := [line(name, values) for name, values in latency.items() if any(value is not None for value in values)]:
        charts.append(("Latency of answered calls", chart(found, "seconds")))
    answered = bar("answered", [day.calls - day.failed for day in days], "chart-1", "%{y} answered")
    failed = bar("failed", [day.failed for day in days], "bad", "%{y} failed")
    charts.append(("Calls per day", chart([answered, failed], "calls")))
    tokens = [
        bar("in", [day.tokens_in for day in days], "chart-1", "%{y} in"),
        bar("out", [day.tokens_out for day in days], "chart-2", "%{y} out"),
    ]
    if any(day.tokens_in for day in days):
        charts.append(("Tokens per day", chart(tokens, "tokens")))
    return charts
