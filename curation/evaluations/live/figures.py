"""The figures of live episodes: a row per model, overall and by tier, counted in the database.

A summed reward can reward stalling, so models are ranked by completed episodes and the reward of the last step.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db.models import Avg, Count, Q, StdDev, Sum

from curation.evaluations.models import Episode, Evaluation
from curation.evaluations.screen.figures import Figures, Group, Row, number, wilson_intervals, with_ranks
from curation.runs.models import Item, ItemState

DECIMALS = 4
COMPLETED = Q(completed=True)
TALLY = {
    "n": Count("pk"),
    "completions": Count("pk", filter=COMPLETED),
    "hints": Count("pk", filter=Q(hinted=True)),
    "all_steps": Sum("steps"),
    "failures": Sum("format_failures"),
    "rewards": Sum("total_reward"),
    "steps_to_complete": Avg("steps", filter=COMPLETED),
    "progress": Avg("max_progress"),
    "last_reward": Avg("terminal_reward"),
    "summed_reward": Avg("total_reward"),
    "deviation": StdDev("total_reward"),
}
NOTHING: Mapping[str, Any] = dict.fromkeys(TALLY) | dict.fromkeys(("n", "completions", "hints", "all_steps"), 0)


def live_rows(evaluation: Evaluation) -> list[Row]:
    """One row per model, ranked. Episodes that failed count under `errors` only."""
    errors = _errors(evaluation)
    tallies = {tally["by_id"]: tally for tally in _tallies(evaluation, "by_id")}
    models = evaluation.models.order_by("place")
    return _ranked([_row(model.name, tallies.get(model.pk, NOTHING), errors.get(model.place, 0)) for model in models])


def live_figures(evaluation: Evaluation) -> Figures:
    """All figures of the evaluation. Tiers are in the order of their names; errors belong to no tier."""
    names = dict(evaluation.models.values_list("pk", "name"))
    by_tier: dict[str, list[Row]] = defaultdict(list)
    for tally in _tallies(evaluation, "tier", "by__place", "by_id"):
        by_tier[tally["tier"]].append(_row(names[tally["by_id"]], tally))
    tiers = [Group(tier, _ranked(rows)) for tier, rows in sorted(by_tier.items())]
    return Figures(live_rows(evaluation), tiers, [])


def _row(model: str, tally: Mapping[str, Any], errors: int = 0) -> Row:
    """The API's row: means and rates with four decimals, None without episodes. `reward_std` is the population's."""
    n, steps = tally["n"], tally["all_steps"]
    figures = {
        "completion_rate": tally["completions"] / n if n else None,
        "avg_steps_to_complete": tally["steps_to_complete"],
        "avg_max_progress": tally["progress"],
        "terminal_reward": tally["last_reward"],
        "avg_reward_per_step": tally["rewards"] / steps if steps else None,
        "avg_episode_reward": tally["summed_reward"],
        "reward_std": tally["deviation"],
        "hint_usage_rate": tally["hints"] / n if n else None,
        "format_failure_rate": tally["failures"] / steps if steps else None,
    }
    rounded = {name: None if value is None else round(float(value), DECIMALS) for name, value in figures.items()}
    hits = {"completion_rate": tally["completions"], "hint_usage_rate": tally["hints"]}
    return {"model": model, "n": n, "errors": errors, **rounded, "intervals": wilson_intervals(hits, n)}


def _ranked(rows: list[Row]) -> list[Row]:
    return with_ranks(sorted(rows, key=_order))


def _order(row: Row) -> tuple[float, float, float]:
    """The most completed first, then the higher last reward, then the fewer steps."""
    steps = float("inf") if row["avg_steps_to_complete"] is None else number(row, "avg_steps_to_complete")
    return (-number(row, "completion_rate"), -number(row, "terminal_reward"), steps)


def _tallies(evaluation: Evaluation, *parts: str) -> list[dict[str, Any]]:
    episodes = Episode.objects.filter(evaluation=evaluation)
    return list(episodes.values(*parts).annotate(**TALLY).order_by(*parts))


def _errors(evaluation: Evaluation) -> dict[int, int]:
    """How many episodes of each model failed, by the model's place in the evaluation."""
    failed = Item.objects.filter(run_id=evaluation.run_id, stage="episodes", state=ItemState.FAILED)
    counted = failed.values_list("data__place").annotate(Count("pk")).order_by()
    return {int(place): count for place, count in counted}
