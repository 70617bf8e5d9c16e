"""Pair kept trajectories with rejected ones of the same scenario or task, by the rules of `sandbox.agent.pairs`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TypeVar

from django.db import transaction

from curation.projects.models import Project
from curation.runs.kinds import Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.trajectories.models import Pair, Trajectory
from curation.trajectories.params import PairParams, trajectories_to_pair
from sandbox.agent.pairs import LeftOut, Side, pair_sides

T = TypeVar("T", int, str)
# Scenarios or tasks of one item.
BATCH = 20


class PairStage:
    name = "pairs"
    queue = "default"

    def __init__(self, params: PairParams) -> None:
        self._params = params

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        """Batches of the scenarios and tasks that have both kept and rejected trajectories."""
        for batch in batches_of(scenarios_with_both(run.project, self._params)):
            yield PlannedItem(f"{batch[0]}-{batch[-1]}", None, {"scenarios": batch})
        for number, tasks in enumerate(batches_of(tasks_with_both(run.project, self._params))):
            yield PlannedItem(f"tasks {number}", None, {"tasks": tasks})

    def work(self, context: WorkContext, item: Item) -> Write:
        pairs: list[Pair] = []
        skip_reasons: Counter[str] = Counter()
        subjects = [(scenario, "") for scenario in item.data.get("scenarios", ())]
        subjects += [(None, task) for task in item.data.get("tasks", ())]
        for scenario_id, task in subjects:
            context.checkpoint()
            pairs += self._pairs_of(context.run, scenario_id, task, skip_reasons)
        return lambda: _save(pairs, skip_reasons)

    def _pairs_of(self, run: Run, scenario_id: int | None, task: str, skip_reasons: Counter[str]) -> list[Pair]:
        """Return pairs that are not saved yet, and count in `skip_reasons` why others are none."""
        rows = trajectories_to_pair(run.project, self._params).of_subject(run.project_id, scenario_id, task)
        sides: dict[bool, list[Trajectory]] = defaultdict(list)
        for row in rows.with_steps().order_by("id"):
            sides[row.keep].append(row)
        pairs: list[Pair] = []
        for chosen, rejected in product(sides[True], sides[False]):
            divergence = pair_sides(_side(chosen), _side(rejected), strategy=self._params.strategy)
            if isinstance(divergence, LeftOut):
                skip_reasons[divergence.value] += 1
                continue
            pairs.append(
                Pair(
                    project_id=run.project_id,
                    run=run,
                    scenario_id=scenario_id,
                    chosen=chosen,
                    rejected=rejected,
                    strategy=self._params.strategy,
                    at=divergence.at,
                )
            )
        return pairs


def scenarios_with_both(project: Project, params: PairParams) -> list[int]:
    """Return the ids of scenarios with kept and rejected trajectories among those to pair."""
    rows = trajectories_to_pair(project, params).filter(scenario__isnull=False).order_by()
    kept = set(rows.filter(keep=True).values_list("scenario_id", flat=True))
    return sorted(pk for pk in kept & set(rows.filter(keep=False).values_list("scenario_id", flat=True)) if pk)


def tasks_with_both(project: Project, params: PairParams) -> list[str]:
    """Return the tasks with kept and rejected trajectories among those to pair."""
    rows = trajectories_to_pair(project, params).filter(scenario=None).exclude(task="").order_by()
    kept = set(rows.filter(keep=True).values_list("task", flat=True))
    return sorted(kept & set(rows.filter(keep=False).values_list("task", flat=True)))


def batches_of(ids: Sequence[T]) -> list[list[T]]:
    return [list(ids[start : start + BATCH]) for start in range(0, len(ids), BATCH)]


@transaction.atomic
def _save(pairs: Sequence[Pair], skip_reasons: Counter[str]) -> Json:
    """Save the new pairs, without those of trajectories deleted meanwhile."""
    ids = {pk for pair in pairs for pk in (pair.chosen_id, pair.rejected_id)}
    existing = set(Trajectory.objects.select_for_update().filter(pk__in=ids).values_list("pk", flat=True))
    strategies = {pair.strategy for pair in pairs}
    paired = set(
        Pair.objects.filter(chosen_id__in=ids, strategy__in=strategies).values_list("chosen_id", "rejected_id")
    )
    new = [
        pair
        for pair in pairs
        if {pair.chosen_id, pair.rejected_id} <= existing and (pair.chosen_id, pair.rejected_id) not in paired
    ]
    Pair.objects.bulk_create(new, ignore_conflicts=True)
    return {"pairs": len(new), "there_already": len(pairs) - len(new), "left_out": dict(skip_reasons)}


def pair_figures(run: Run) -> Json:
    """The result of a pairs run: the new pairs, those that existed, and why others were skipped."""
    total: Counter[str] = Counter()
    skip_reasons: Counter[str] = Counter()
    for result in Item.objects.filter(run=run, stage="pairs", state=ItemState.DONE).values_list("result", flat=True):
        total.update(pairs=result["pairs"], there_already=result["there_already"])
        skip_reasons.update(result["left_out"])
    return {"pairs": total["pairs"], "there_already": total["there_already"], "left_out": dict(skip_reasons)}


def _side(row: Trajectory) -> Side:
    return Side(row.text.steps, row.outcome, row.bundle_sha256)
