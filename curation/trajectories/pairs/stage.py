"""Stage `pairs`: kept trajectories against rejected ones of the same scenario (`sandbox.agent.pairs` has the rules)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from django.db import transaction

from curation.projects.models import Project
from curation.runs.kinds import Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.trajectories.models import Pair, Trajectory
from curation.trajectories.params import PairParams
from curation.trajectories.selection import trajectories_in
from sandbox.agent.pairs import LeftOut, Side, pair_sides

SCENARIOS = 20


@dataclass(frozen=True, slots=True)
class Found:
    """What a batch of scenarios holds: pairs, not yet written, and the reasons of those that are none."""

    pairs: tuple[Pair, ...]
    left_out: Counter[str]


class PairStage:
    name = "pairs"
    queue = "default"

    def __init__(self, params: PairParams) -> None:
        self._params = params

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        """Batches of the scenarios that have trajectories of both sorts."""
        for batch in batches_of(scenarios_with_both(run.project, self._params.filter)):
            yield PlannedItem(f"{batch[0]}-{batch[-1]}", None, {"scenarios": batch})

    def work(self, context: WorkContext, item: Item) -> Write:
        pairs: list[Pair] = []
        left_out: Counter[str] = Counter()
        for scenario_id in item.data["scenarios"]:
            context.checkpoint()
            found = self._pairs_of(context.run, scenario_id)
            pairs += found.pairs
            left_out += found.left_out
        return lambda: _save(pairs, left_out)

    def _pairs_of(self, run: Run, scenario_id: int) -> Found:
        rows = trajectories_in(run.project, self._params.filter).filter(scenario=scenario_id)
        sides: dict[bool, list[Trajectory]] = defaultdict(list)
        for row in rows.with_turns().order_by("id"):
            sides[row.keep].append(row)
        pairs: list[Pair] = []
        left_out: Counter[str] = Counter()
        for chosen, rejected in product(sides[True], sides[False]):
            said = pair_sides(_side(chosen), _side(rejected), strategy=self._params.strategy)
            if isinstance(said, LeftOut):
                left_out[said.value] += 1
                continue
            pairs.append(
                Pair(
                    project_id=run.project_id,
                    run=run,
                    scenario_id=scenario_id,
                    chosen=chosen,
                    rejected=rejected,
                    strategy=self._params.strategy,
                    at=said.at,
                )
            )
        return Found(tuple(pairs), left_out)


def scenarios_with_both(project: Project, given: Json) -> list[int]:
    """The scenarios with both kept and rejected trajectories among those that the filter means, in order."""
    rows = trajectories_in(project, given).order_by()
    kept = set(rows.filter(keep=True).values_list("scenario_id", flat=True))
    return sorted(kept & set(rows.filter(keep=False).values_list("scenario_id", flat=True)))


def batches_of(ids: Sequence[int]) -> list[list[int]]:
    return [list(ids[start : start + SCENARIOS]) for start in range(0, len(ids), SCENARIOS)]


@transaction.atomic
def _save(pairs: Sequence[Pair], left_out: Counter[str]) -> Json:
    """Writes the pairs that are not there yet; one of a trajectory that was deleted meanwhile is none."""
    wanted = {pk for pair in pairs for pk in (pair.chosen_id, pair.rejected_id)}
    there = set(Trajectory.objects.select_for_update().filter(pk__in=wanted).values_list("pk", flat=True))
    strategies = {pair.strategy for pair in pairs}
    before = set(
        Pair.objects.filter(chosen_id__in=wanted, strategy__in=strategies).values_list("chosen_id", "rejected_id")
    )
    new = [
        pair
        for pair in pairs
        if {pair.chosen_id, pair.rejected_id} <= there and (pair.chosen_id, pair.rejected_id) not in before
    ]
    Pair.objects.bulk_create(new, ignore_conflicts=True)
    return {"pairs": len(new), "there_already": len(pairs) - len(new), "left_out": dict(left_out)}


def pair_figures(run: Run) -> Json:
    """Pairs that the run wrote or found, and why the others were left out."""
    total: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for result in Item.objects.filter(run=run, stage="pairs", state=ItemState.DONE).values_list("result", flat=True):
        total.update(pairs=result["pairs"], there_already=result["there_already"])
        left_out.update(result["left_out"])
    return {"pairs": total["pairs"], "there_already": total["there_already"], "left_out": dict(left_out)}


def _side(row: Trajectory) -> Side:
    return Side(row.text.turns, row.outcome, row.bundle_sha256)
