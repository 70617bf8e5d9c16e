from collections import defaultdict
from collections.abc import Mapping

from curation.evaluations.missing import missing_by_place
from curation.evaluations.models import Episode, Evaluation
from curation.evaluations.screen.charts import labelled
from curation.web.charts import Figure, axis, color, figure

# By the name in the URL. The first is the default.
SHOWN = {"reward": ("total_reward", "summed reward"), "steps": ("steps", "steps")}
# More points than a screen has pixels say nothing: then one point is the mean of some neighbours.
MOST_POINTS = 500
Point = tuple[int, str, float]


def episode_chart(evaluation: Evaluation, shown: str) -> Figure:
    """A line for each model over its episodes, in the order of the tasks."""
    column, title = SHOWN.get(shown, SHOWN["reward"])
    points: dict[str, list[Point]] = defaultdict(list)
    missing = missing_by_place(evaluation)
    episodes = Episode.objects.filter(evaluation=evaluation).order_by("by__place", "number", "pk")
    columns = ("by__name", "by__place", "number", "key", "tier", column)
    if column != "steps" and column not in evaluation.reported:
        episodes = episodes.none()
    for model, place, number, key, tier, value in episodes.values_list(*columns):
        name = labelled(model, incomplete=missing.get(place, 0) > 0)
        points[name].append((number + 1, f"{key} {tier}".strip(), float(value or 0.0)))
    return lines_over_episodes(points, title)


def lines_over_episodes(points: Mapping[str, list[Point]], title: str) -> Figure:
    """A line for each name. A point is the episode's number, its label, and its value."""
    traces = [_line(position, name, found) for position, (name, found) in enumerate(points.items())]
    return figure(traces, xaxis=axis("episode"), yaxis=axis(title, rangemode="tozero"))


def _line(position: int, model: str, points: list[Point]) -> Figure:
    step = max(1, -(-len(points) // MOST_POINTS))
    groups = [points[start : start + step] for start in range(0, len(points), step)]
    token = f"chart-{position % 5 + 1}"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": model,
        "x": [group[0][0] for group in groups],
        "y": [sum(value for _, _, value in group) / len(group) for group in groups],
        "text": [group[0][1] if step == 1 else f"mean of {len(group)} episodes" for group in groups],
        "line": {"width": 1, "color": color(token)},
        "marker": {"size": 5, "color": color(token)},
        "hovertemplate": "%{text}: %{y:.2f}<extra>" + model + "</extra>",
    }
