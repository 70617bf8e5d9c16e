"""Pair kept trajectories with rejected ones of the same scenario or task, by the rules of `sandbox.agent.pairs`."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from django.db import transaction

from curation.projects.models import Project
from curation.runs.kinds import Json, PlannedItem, StageOf, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.trajectories.models import Pair, StepAdvantage, Strategy, Trajectory, TrajectoryQuerySet
from curation.trajectories.params import PairParams, trajectories_to_pair
from judging.statistics.values import ActionVerdict
from sandbox.agent.pairs import NoPairReason, PairSide, compared, pair_sides


def place_of(chosen: Trajectory, rejected: Trajectory, at: int) -> str:
    """Return a digest of the place, which is equal for all pairs that part in it; empty if the states of `chosen` are
    not known. Needs the steps and the trace of both."""
    trace = getattr(chosen, "trace", None)
    key = trace.keys[at - 1] if trace and at else ""
    actions = (str(compared(row.text.steps[at]).action) for row in (chosen, rejected))
    return hashlib.sha256("\0".join([key, *actions]).encode(errors="replace")).hexdigest() if key else ""


# Scenarios or tasks of one item.
BATCH = 20
NOT_BETTER = "no probe shows that the chosen action is better"
OVER_CAP = "the scenario, or the state in which they part, has enough pairs"
LABELS = ("advantage", "advantage_low", "advantage_high")


class PairStage(StageOf[PairParams]):
    name = "pairs"
    queue = "default"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        """Batches of the scenarios and tasks that have both kept and rejected trajectories."""
        for batch in scenarios_to_pair(run.project, self._params):
            yield PlannedItem(f"{batch[0]}-{batch[-1]}", None, {"scenarios": batch})
        for number, tasks in enumerate(tasks_to_pair(run.project, self._params)):
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
        for row in rows.with_steps().select_related("text", "trace").order_by("id"):
            sides[row.keep].append(row)
        by_action = Strategy(self._params.strategy) is Strategy.FIRST_DIVERGENCE
        known = _advantages(run.project, scenario_id) if by_action else {}
        pairs: list[tuple[Pair, str]] = []
        for chosen, rejected in product(sides[True], sides[False]):
            divergence = pair_sides(_side(chosen), _side(rejected), strategy=self._params.strategy)
            if isinstance(divergence, NoPairReason):
                skip_reasons[divergence.value] += 1
                continue
            place = place_of(chosen, rejected, divergence.at)
            advantage = known.get(place)
            if not _is_sure(advantage, self._params.advantage):
                skip_reasons[NOT_BETTER] += 1
                continue
            pair = Pair(
                project_id=run.project_id,
                run=run,
                scenario_id=scenario_id,
                chosen=chosen,
                rejected=rejected,
                strategy=self._params.strategy,
                at=divergence.at,
            )
            if advantage is not None:
                pair.advantage = advantage.difference
                pair.advantage_low, pair.advantage_high = advantage.low, advantage.high
            pairs.append((pair, place))
        return self._capped(pairs, skip_reasons)

    def _capped(self, pairs: Sequence[tuple[Pair, str]], skip_reasons: Counter[str]) -> list[Pair]:
        """Return the pairs within the caps, those with the surest advantage first."""
        caps = (self._params.per_scenario, self._params.per_divergence)
        if not any(caps):
            return [pair for pair, _ in pairs]
        taken: Counter[str] = Counter()
        found: list[Pair] = []
        for pair, place in sorted(pairs, key=_surest_first):
            groups = ("", place or _parting(pair))
            if any(cap and taken[group] >= cap for cap, group in zip(caps, groups, strict=True)):
                skip_reasons[OVER_CAP] += 1
                continue
            taken.update(groups)
            found.append(pair)
        return found


def _advantages(project: Project, scenario_id: int | None) -> dict[str, StepAdvantage]:
    """Return the newest advantage in each place of the scenario."""
    rows = StepAdvantage.objects.filter(value__trajectory__scenario=scenario_id, value__project=project)
    return {row.place: row for row in rows.exclude(place="").order_by("id")} if scenario_id else {}


def _is_sure(advantage: StepAdvantage | None, wanted: str) -> bool:
    if wanted == "any":
        return True
    enough = [ActionVerdict.BETTER] if wanted == "proven" else [ActionVerdict.BETTER, ActionVerdict.LIKELY]
    return advantage is not None and advantage.verdict in enough


def _surest_first(known: tuple[Pair, str]) -> float:
    low = known[0].advantage_low
    return 1.0 if low is None else -low


def _parting(pair: Pair) -> str:
    """Return the shared steps of a pair and its actions, where the states are not known."""
    shared = [compared(step) for step in pair.chosen.text.steps[: pair.at]]
    return str([shared, *(compared(side.text.steps[pair.at]).action for side in (pair.chosen, pair.rejected))])


def scenarios_to_pair(project: Project, params: PairParams) -> list[list[int]]:
    """Return batches of the ids of scenarios with kept and rejected trajectories among those to pair."""
    return _batches_with_both(trajectories_to_pair(project, params).filter(scenario__isnull=False), "scenario_id")


def tasks_to_pair(project: Project, params: PairParams) -> list[list[str]]:
    """Return batches of the tasks with kept and rejected trajectories among those to pair."""
    rows = trajectories_to_pair(project, params).filter(scenario=None).exclude(task="")
    return _batches_with_both(rows, "task")


def _batches_with_both(rows: TrajectoryQuerySet, column: str) -> list[list[Any]]:
    values = rows.order_by().values_list(column, flat=True)
    both = sorted(set(values.filter(keep=True)) & set(values.filter(keep=False)))
    return [both[start : start + BATCH] for start in range(0, len(both), BATCH)]


@transaction.atomic
def _save(pairs: Sequence[Pair], skip_reasons: Counter[str]) -> Json:
    """Save the new pairs, without those of trajectories deleted meanwhile. Pairs that exist get new advantages."""
    ids = {pk for pair in pairs for pk in (pair.chosen_id, pair.rejected_id)}
    existing = set(Trajectory.objects.select_for_update().filter(pk__in=ids).values_list("pk", flat=True))
    strategies = {pair.strategy for pair in pairs}
    rows = Pair.objects.select_for_update().filter(chosen_id__in=ids, strategy__in=strategies)
    paired = {(row.chosen_id, row.rejected_id): row for row in rows}
    measured = []
    for pair in pairs:
        known = paired.get((pair.chosen_id, pair.rejected_id))
        if known is not None and pair.advantage is not None:
            for name in LABELS:
                setattr(known, name, getattr(pair, name))
            measured.append(known)
    Pair.objects.bulk_update(measured, LABELS, batch_size=500)
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


def _side(row: Trajectory) -> PairSide:
    return PairSide(row.text.steps, row.outcome, row.bundle_sha256)
