"""Plotly figures, built in Python and drawn by `static/js/charts.js`. Colours are the design system's tokens."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from curation.dashboard.overview.stats import BIN, DAYS, Stats
from curation.projects.settings.document import Thresholds
from curation.trajectories.models import Outcome

Figure = dict[str, Any]
DAY_MS = 86_400_000


def score_histogram(stats: Stats, edges: Thresholds) -> Figure:
    """Samples per score, coloured by bucket, with the two bucket edges as lines."""
    lows = [index * BIN for index in range(len(stats.histogram))]
    tones = {"good": [], "borderline": [], "bad": []}  # type: dict[str, list[int]]
    for low, count in zip(lows, stats.histogram, strict=True):
        middle = low + BIN / 2
        tone = "good" if middle >= edges.final else "borderline" if middle >= edges.refined else "bad"
        for name, values in tones.items():
            values.append(count if name == tone else 0)
    names = {"good": "final", "borderline": "refined", "bad": "defeat"}
    bars = [
        {
            "type": "bar",
            "name": names[tone],
            "x": [low + BIN / 2 for low in lows],
            "y": values,
            "width": BIN * 0.92,
            "marker": {"color": f"var(--{tone})"},
            "hovertemplate": "%{y} samples around %{x}<extra>" + names[tone] + "</extra>",
        }
        for tone, values in tones.items()
    ]
    return {"data": bars, "layout": _histogram_layout(edges)}


def _histogram_layout(edges: Thresholds) -> Figure:
    stroke = {"dash": "dot", "width": 1, "color": "var(--text-2)"}
    lines = [
        {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": stroke}
        for at in (edges.refined, edges.final)
    ]
    notes = [
        {
            "x": at,
            "y": 1,
            "yref": "paper",
            "yanchor": "bottom",
            "text": f"{name} ≥ {at:g}",
            "showarrow": False,
            "xanchor": side,
        }
        for name, at, side in (("refined", edges.refined, "right"), ("final", edges.final, "left"))
    ]
    return {
        "barmode": "stack",
        "showlegend": False,
        "xaxis": {"title": {"text": "score"}, "range": [0, 100], "dtick": 10},
        "yaxis": {"title": {"text": "samples"}, "rangemode": "tozero"},
        "margin": {"t": 24},
        "shapes": lines,
        "annotations": notes,
    }


def review_pace(stats: Stats) -> Figure:
    """Decisions per day, stacked by reviewer."""
    reviewers = sorted({entry["reviewer"] for entry in stats.pace})
    bars = []
    for reviewer in reviewers:
        own = [entry for entry in stats.pace if entry["reviewer"] == reviewer]
        days, counts = [entry["day"] for entry in own], [entry["n"] for entry in own]
        # Plotly guesses the width from the distance of two bars, which a single day does not have.
        bars.append({"type": "bar", "name": reviewer, "x": days, "y": counts, "width": 0.8 * DAY_MS})
    today = timezone.localdate()
    span = [str(today - timedelta(days=DAYS)), str(today + timedelta(days=1))]
    layout = {
        "barmode": "stack",
        "showlegend": len(reviewers) > 1,
        "xaxis": {"type": "date", "tickformat": "%d %b", "range": span},
        "yaxis": {"title": {"text": "decisions"}, "rangemode": "tozero"},
    }
    return {"data": bars, "layout": layout}


def outcome_bars(stats: Stats, list_url: str) -> Figure:
    """Trajectories per outcome; a bar opens the list of its trajectories at `list_url`."""
    shown = [outcome for outcome in reversed(Outcome) if stats.outcomes[outcome]]
    total = sum(stats.outcomes.values())
    bar = {
        "type": "bar",
        "orientation": "h",
        "x": [stats.outcomes[outcome] for outcome in shown],
        "y": [str(outcome.label) for outcome in shown],
        "text": [f"{stats.outcomes[outcome] / total:.0%}" for outcome in shown],
        "textposition": "auto",
        "customdata": [f"{list_url}?outcome={outcome.value}" for outcome in shown],
        "marker": {"color": [f"var(--{outcome.tone})" for outcome in shown]},
        "hovertemplate": "%{x} trajectories<extra>%{y}</extra>",
    }
    layout = {"showlegend": False, "xaxis": {"title": {"text": "trajectories"}, "rangemode": "tozero"}}
    return {"data": [bar], "layout": layout}
