"""The charts of the overview."""

from datetime import timedelta

from django.utils import timezone

from curation.dashboard.overview.stats import BIN, DAYS, Stats
from curation.projects.settings.document import Thresholds
from curation.trajectories.models import Outcome
from curation.web.charts import Figure, axis, bars, color, figure, vertical_line

DAY_MS = 86_400_000


def score_histogram(stats: Stats, edges: Thresholds) -> Figure:
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
            hover="%{y} samples around %{x}",
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


def review_pace(stats: Stats) -> Figure:
    """Decisions per day, stacked by reviewer."""
    reviewers = sorted({entry["reviewer"] for entry in stats.pace})
    traces = []
    for reviewer in reviewers:
        own = [entry for entry in stats.pace if entry["reviewer"] == reviewer]
        days, counts = [entry["day"] for entry in own], [entry["n"] for entry in own]
        # Plotly guesses the width from the distance between two bars, so a single day needs one.
        traces.append(bars(reviewer, days, counts, width=0.8 * DAY_MS))
    today = timezone.localdate()
    span = [str(today - timedelta(days=DAYS)), str(today + timedelta(days=1))]
    return figure(
        traces,
        barmode="stack",
        showlegend=len(reviewers) > 1,
        xaxis={"type": "date", "tickformat": "%d %b", "range": span},
        yaxis=axis("decisions", rangemode="tozero"),
    )


def outcome_bars(stats: Stats, list_url: str) -> Figure:
    """Trajectories per outcome; a bar opens the list of its trajectories at `list_url`."""
    shown = [outcome for outcome in reversed(Outcome) if stats.outcomes[outcome]]
    total = sum(stats.outcomes.values())
    trace = bars(
        "%{y}",
        [stats.outcomes[outcome] for outcome in shown],
        [str(outcome.label) for outcome in shown],
        hover="%{x} trajectories",
        orientation="h",
        text=[f"{stats.outcomes[outcome] / total:.0%}" for outcome in shown],
        textposition="auto",
        customdata=[f"{list_url}?outcome={outcome.value}" for outcome in shown],
        marker={"color": [color(outcome.tone) for outcome in shown]},
    )
    return figure([trace], showlegend=False, xaxis=axis("trajectories", rangemode="tozero"))
