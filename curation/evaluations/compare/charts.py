from collections.abc import Sequence

from curation.evaluations.compare.compare import MetricChange, ModelComparison
from curation.evaluations.live.charts import SHOWN, lines_over_episodes
from curation.evaluations.metrics import SHARE
from curation.evaluations.screen.charts import labelled
from curation.web.charts import Figure, axis, color, error_bars, figure, vertical_line


def change_chart(found: ModelComparison) -> Figure:
    """The change of each rate in percentage points with its 95 % interval, for all rows and for each tier."""
    groups = [(f"all {found.scale.noun}s", found.metrics)]
    groups += [(tier.tier or "no tier", tier.metrics) for tier in found.tiers]
    incomplete = found.missing > 0
    return figure(
        [
            _points(position, labelled(name, incomplete=incomplete), metrics)
            for position, (name, metrics) in enumerate(groups)
        ],
        xaxis=axis("percentage points, after − before", zeroline=True),
        yaxis={"type": "category", "autorange": "reversed"},
        shapes=[vertical_line(0)],
    )


def episodes_chart(found: ModelComparison, shown: str) -> Figure:
    """Reward or steps of both models over the episodes that both played, in the order of the tasks."""
    column, title = SHOWN.get(shown, SHOWN["reward"])
    sides = {"before": [pair.before for pair in found.pairs], "after": [pair.after for pair in found.pairs]}
    names = {"before": found.before.name, "after": found.after.name}
    lines = {
        labelled(f"{names[side]} ({side})", incomplete=found.missing > 0): [
            (pair.example.number, f"{pair.example.task} {pair.example.tier}".strip(), result.values[column])
            for pair, result in zip(found.pairs, results, strict=True)
            if column in result.values
        ]
        for side, results in sides.items()
    }
    return lines_over_episodes(lines, title)


def _points(position: int, name: str, metrics: Sequence[MetricChange]) -> Figure:
    rates = [change for change in metrics if change.metric.unit is SHARE]
    changes = [100 * rate.change.delta for rate in rates]
    intervals = [(100 * rate.change.interval.low, 100 * rate.change.interval.high) for rate in rates]
    token = f"chart-{position % 5 + 1}"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": changes,
        "y": [rate.metric.label for rate in rates],
        "marker": {"size": 6 if position else 9, "color": color(token)},
        "error_x": error_bars(changes, intervals, token=token),
        # The points of two groups would cover each other; a click on the legend shows a tier.
        "visible": "legendonly" if position else True,
        "text": [SHARE.change(rate.change.delta) for rate in rates],
        "hovertemplate": "%{text}<extra>" + name + "</extra>",
    }
