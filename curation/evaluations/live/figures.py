"""What live episodes come to: a row per model, also by tier, counted in the database.

Metrics as the specification of evaluations, section 2, names them. A summed reward can pay for stalling: it is given,
and labelled; the last step's reward and the share of completed episodes are what models are ranked by.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db.models import Avg, Count, Q, StdDev, Sum

from curation.evaluations.models import Episode, EvaluatedModel, Evaluation
from curation.evaluations.screen.figures import Figures, Group, Row
from curation.runs.models import Item, ItemState
from judging.statistics.rates import wilson

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
    """One row per model, ranked. Episodes that broke are counted in `errors` and nowhere else."""
    errors = _errors(evaluation)
    tallies = {tally["by_id"]: tally for tally in _tallies(evaluation, "by_id")}
    models = evaluation.models.order_by("place")
    return _ranked([_row(model.name, tallies.get(model.pk, NOTHING), errors.get(model.place, 0)) for model in models])


def live_tiers(evaluation: Evaluation) -> list[Group]:
    """The same by tier, in the order of their names; errors belong to no tier."""
    names = dict(evaluation.models.values_list("pk", "name"))
    by_tier: dict[str, list[Row]] = defaultdict(list)
    for tally in _tallies(evaluation, "tier", "by__place", "by_id"):
        by_tier[tally["tier"]].append(_row(names[tally["by_id"]], tally))
    return [Group(tier, _ranked(rows)) for tier, rows in sorted(by_tier.items())]


def live_figures(evaluation: Evaluation) -> Figures:
    """Everything that the evaluation's call says of its episodes."""
    return Figures(live_rows(evaluation), live_tiers(evaluation), [])


def keep_live_figures(evaluation: Evaluation) -> list[Row]:
    """Writes each model's row beside it, for lists; needs a transaction. Live rows rank nowhere with static ones."""
    rows = live_rows(evaluation)
    for row in rows:
        EvaluatedModel.objects.filter(evaluation=evaluation, name=row["model"]).update(figures=row)
    return rows


def _row(model: str, tally: Mapping[str, Any], errors: int = 0) -> Row:
    """The API's row. Means and rates with four decimals, None where there is nothing to average; intervals: Wilson,
    95 %; `reward_std` is the population's."""
    n, steps = tally["n"], tally["all_steps"]
    intervals = {"completion_rate": wilson(tally["completions"], n), "hint_usage_rate": wilson(tally["hints"], n)}
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
    ends = {name: [round(found.low, 3), round(found.high, 3)] for name, found in intervals.items()}
    return {"model": model, "n": n, "errors": errors, **rounded, "intervals": ends}


def _ranked(rows: list[Row]) -> list[Row]:
    return [{"rank": place, **row} for place, row in enumerate(sorted(rows, key=_order), 1)]


def _order(row: Row) -> tuple[float, float, float]:
    """The most completed first, then the higher last reward, then the fewer steps."""
    values = [row["completion_rate"], row["terminal_reward"], row["avg_steps_to_complete"]]
    done, reward, steps = (float(value) if isinstance(value, int | float) else None for value in values)
    return (-(done or 0.0), -(reward or 0.0), float("inf") if steps is None else steps)


def _tallies(evaluation: Evaluation, *parts: str) -> list[dict[str, Any]]:
    episodes = Episode.objects.filter(evaluation=evaluation)
    return list(episodes.values(*parts).annotate(**TALLY).order_by(*parts))


def _errors(evaluation: Evaluation) -> dict[int, int]:
    """How many episodes of each model broke, by the model's place."""
    failed = Item.objects.filter(run_id=evaluation.run_id, stage="episodes", state=ItemState.FAILED)
    counted = failed.values_list("data__place").annotate(Count("pk")).order_by()
    return {int(place): count for place, count in counted}
