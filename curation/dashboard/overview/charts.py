from collections.abc import Callable
from datetime import timedelta

from django.utils import timezone

from curation.dashboard.overview.stats import BIN, DAYS, StatsOut
from curation.projects.settings.document import ThresholdSettings
from curation.runs.usage.figures import CallDayOut
from curation.trajectories.models import Outcome
from curation.web.charts import DAY_MS, Figure, axis, bars, color, figure, lines, vertical_line
from curation.web.text.figures import money, percent


def _seconds(day: CallDayOut) -> float | None:
    return None if day.latency_ms is None else day.latency_ms / 1000


# Figures of the model charts: the title of the axis, and the value of a day.
SHOWN: dict[str, tuple[str, Callable[[CallDayOut], float | None]]] = {
    "cost": ("US dollars", lambda day: float(day.cost)),
    "latency": ("seconds", _seconds),
    "errors": ("% failed", lambda day: 100 * day.failed / day.calls),
}


def score_histogram(stats: StatsOut, edges: ThresholdSettings) -> Figure:
    """Samples per score, coloured by bucket, with the two bucket edges as lines."""
    middles = [index * BIN + BIN / 2 for index in range(len(stats.histogram))]
    buckets = [
        ("final", "good", edges.final, 100.0),
        ("refined", "borderline", edges.refined, edges.final),
        ("defeat", "bad", 0.0, edges.refined),
    ]
    traces = [
        bars(
            name,
            middles,
            [count if low <= x < high else 0 for x, count in zip(middles, stats.histogram, strict=True)],
            hover="samples: %{y}, score: about %{x}",
            width=BIN * 0.92,
            marker={"color": color(tone)},
        )
        for name, tone, low, high in buckets
    ]
    labels = [
        {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "xanchor": side, "text": text, "showarrow": False}
        for at, side, text in (
            (edges.refined, "right", f"refined ≥ {edges.refined:g}"),
            (edges.final, "left", f"final ≥ {edges.final:g}"),
        )
    ]
    return figure(
        traces,
        barmode="stack",
        showlegend=False,
        xaxis=axis("score", range=[0, 100], dtick=10),
        yaxis=axis("samples", rangemode="tozero"),
        margin={"t": 24},
        shapes=[vertical_line(at, dash="dot") for at in (edges.refined, edges.final)],
        annotations=labels,
    )


def review_pace(stats: StatsOut) -> Figure:
    reviewers = sorted({str(entry["reviewer"]) for entry in stats.pace})
    traces = []
    for reviewer in reviewers:
        own = [entry for entry in stats.pace if entry["reviewer"] == reviewer]
        days, counts = [entry["day"] for entry in own], [entry["n"] for entry in own]
        # Plotly guesses the width from the distance between two bars, so a single day needs one.
        traces.append(bars(reviewer, days, counts, width=0.8 * DAY_MS))
    return figure(
        traces,
        barmode="stack",
        showlegend=len(reviewers) > 1,
        xaxis=_days(),
        yaxis=axis("decisions", rangemode="tozero"),
    )


def _days() -> Figure:
    today = timezone.localdate()
    span = [str(today - timedelta(days=DAYS)), str(today + timedelta(days=1))]
    return axis("day", type="date", tickformat="%d %b", range=span)


def model_days(stats: StatsOut, shown: str) -> Figure:
    """One of `SHOWN` of each model's calls, day by day."""
    title, value = SHOWN[shown]
    traces = []
    for model in sorted({day.model for day in stats.calls_by_day}):
        own = [day for day in stats.calls_by_day if day.model == model and value(day) is not None]
        days, values = [day.day for day in own], [value(day) for day in own]
        if shown == "cost":
            shown_costs = [money(value) for value in values]
            traces.append(bars(model, days, values, hover="%{hovertext}", hovertext=shown_costs, width=0.8 * DAY_MS))
        elif days:
            traces.append(lines(model, days, values, title))
    return figure(traces, barmode="stack", showlegend=True, xaxis=_days(), yaxis=axis(title, rangemode="tozero"))


def outcome_bars(stats: StatsOut, list_url: str) -> Figure:
    """Trajectories per outcome; a bar opens the list of its trajectories at `list_url`."""
    shown = [outcome for outcome in reversed(Outcome) if stats.outcomes[outcome]]
    total = sum(stats.outcomes.values())
    trace = bars(
        "%{y}",
        [stats.outcomes[outcome] for outcome in shown],
        [str(outcome.label) for outcome in shown],
        hover="trajectories: %{x}",
        orientation="h",
        text=[percent(stats.outcomes[outcome] / total) for outcome in shown],
        textposition="auto",
        customdata=[f"{list_url}?outcome={outcome.value}" for outcome in shown],
        marker={"color": [color(outcome.tone) for outcome in shown]},
    )
    return figure([trace], showlegend=False, xaxis=axis("trajectories", rangemode="tozero"))
