"""What live episodes come to: a row per model, also by tier.

Metrics as the specification of evaluations, section 2, names them. A summed reward can pay for stalling: it is given,
and labelled; the last step's reward and the share of completed episodes are what models are ranked by.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from curation.evaluations.figures import Figures, Group, Row
from curation.evaluations.models import Episode, EvaluatedModel, Evaluation
from curation.runs.models import Item, ItemState
from judging.rates import wilson

# The columns in their order, as tables and files have them; `n` episodes and `errors` stand before.
COLUMNS = (
    *("completion_rate", "avg_steps_to_complete", "avg_max_progress", "terminal_reward", "avg_reward_per_step"),
    *("avg_episode_reward", "reward_std", "hint_usage_rate", "format_failure_rate"),
)
RATES = ("completion_rate", "hint_usage_rate")
DECIMALS = 4


def live_rows(evaluation: Evaluation) -> list[Row]:
    """One row per model that has played, ranked. Episodes that broke are counted in `errors` and nowhere else."""
    return _table(_episodes(evaluation), _errors(evaluation))


def live_tiers(evaluation: Evaluation) -> list[Group]:
    """The same by tier, in the order of their names; errors belong to no tier."""
    by_tier: dict[str, list[Episode]] = defaultdict(list)
    for episode in _episodes(evaluation):
        by_tier[episode.tier].append(episode)
    return [Group(tier, _table(episodes, {})) for tier, episodes in sorted(by_tier.items())]


def live_figures(evaluation: Evaluation) -> Figures:
    """Everything that the evaluation's call says of its episodes."""
    return Figures(live_rows(evaluation), live_tiers(evaluation), [])


def keep_live_figures(evaluation: Evaluation) -> list[Row]:
    """Writes each model's row beside it, for lists; needs a transaction. Live rows rank nowhere with static ones."""
    rows = live_rows(evaluation)
    for row in rows:
        EvaluatedModel.objects.filter(evaluation=evaluation, name=row["model"]).update(figures=row)
    return rows


def live_row(model: str, episodes: Sequence[Episode], errors: int = 0) -> Row:
    """The API's row. Means and rates with four decimals, None where there is nothing to average; intervals: Wilson,
    95 %; `reward_std` is the population's."""
    n = len(episodes)
    completed = [episode for episode in episodes if episode.completed]
    steps = sum(episode.steps for episode in episodes)
    rewards = [episode.total_reward for episode in episodes]
    counts = {"completion_rate": len(completed), "hint_usage_rate": sum(episode.hinted for episode in episodes)}
    intervals = {name: wilson(count, n) for name, count in counts.items()}
    figures = {
        "completion_rate": _mean([float(episode.completed) for episode in episodes]),
        "avg_steps_to_complete": _mean([float(episode.steps) for episode in completed]),
        "avg_max_progress": _mean([episode.max_progress for episode in episodes]),
        "terminal_reward": _mean([episode.terminal_reward for episode in episodes]),
        "avg_reward_per_step": sum(rewards) / steps if steps else None,
        "avg_episode_reward": _mean(rewards),
        "reward_std": statistics.pstdev(rewards) if rewards else None,
        "hint_usage_rate": _mean([float(episode.hinted) for episode in episodes]),
        "format_failure_rate": sum(episode.format_failures for episode in episodes) / steps if steps else None,
    }
    rounded = {name: None if value is None else round(value, DECIMALS) for name, value in figures.items()}
    ends = {name: [round(found.low, 3), round(found.high, 3)] for name, found in intervals.items()}
    return {"model": model, "n": n, "errors": errors, **rounded, "intervals": ends}


def _table(episodes: Iterable[Episode], errors: dict[str, int]) -> list[Row]:
    by_model: dict[str, list[Episode]] = defaultdict(list)
    for name in errors:
        by_model[name] = []
    for episode in episodes:
        by_model[episode.by.name].append(episode)
    rows = [live_row(name, found, errors.get(name, 0)) for name, found in by_model.items()]
    return [{"rank": place, **row} for place, row in enumerate(sorted(rows, key=_order), 1)]


def _order(row: Row) -> tuple[float, float, float]:
    """The most completed first, then the higher last reward, then the fewer steps."""
    values = [row["completion_rate"], row["terminal_reward"], row["avg_steps_to_complete"]]
    done, reward, steps = (float(value) if isinstance(value, int | float) else None for value in values)
    return (-(done or 0.0), -(reward or 0.0), float("inf") if steps is None else steps)


def _episodes(evaluation: Evaluation) -> list[Episode]:
    return list(Episode.objects.filter(evaluation=evaluation).with_model().order_by("by__place", "pk"))


def _errors(evaluation: Evaluation) -> dict[str, int]:
    names = dict(evaluation.models.values_list("place", "name"))
    failed = Item.objects.filter(run_id=evaluation.run_id, stage="episodes", state=ItemState.FAILED)
    counts = dict.fromkeys(names.values(), 0)
    for data in failed.values_list("data", flat=True):
        counts[names[data["place"]]] += 1
    return counts


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
