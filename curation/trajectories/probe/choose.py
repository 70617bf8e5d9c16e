"""The stage `choose`: the steps that are compared, and their values by the rollouts at hand."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from django.db.models import Count, F, Q, Sum

from curation.projects.models import Project
from curation.runs.kinds import Json, PlannedItem, StageOf, WorkContext, Write
from curation.runs.models import Item, Run
from curation.trajectories.models import NEVER_NEGATIVE, StepAdvantage, StepValue, Trajectory
from curation.trajectories.pairs import place_of
from curation.trajectories.params import ProbeParams
from curation.trajectories.probe.states import rows_to_probe
from curation.trajectories.probe.values import settle
from sandbox.agent.pairs import Divergence, PairSide, pair_sides


class ProbePlace(NamedTuple):
    trajectory: Trajectory
    at: int

    @property
    def key(self) -> str:
        """The state after it; empty if the step ended the episode."""
        return str(self.trajectory.trace.keys[self.at])

    @property
    def ended(self) -> bool:
        return not self.key and self.at == len(self.trajectory.trace.keys) - 1 and bool(self.trajectory.terminal)

    @property
    def unchanged(self) -> bool:
        """Whether the step left the state as it was."""
        states = self.trajectory.trace.states
        return bool(states[self.at]) and states[self.at] == states[self.at - 1]


def states_to_value(project: Project, params: ProbeParams) -> int:
    """Return the most states that a probe can go on from."""
    rows = rows_to_probe(project, params)
    if params.steps == "all":
        return rows.aggregate(steps=Sum("steps"))["steps"] or 0
    sides = rows.values("scenario").annotate(
        kept=Count("id", filter=Q(keep=True)), rest=Count("id", filter=Q(keep=False))
    )
    return sum(2 * min(params.per_scenario, side["kept"] * side["rest"]) for side in sides)


class ChooseStage(StageOf[ProbeParams]):
    name = "choose"
    queue = "default"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        ids = rows_to_probe(run.project, self._params).filter(trace__isnull=False).values_list("scenario", flat=True)
        return [PlannedItem(str(pk), pk) for pk in sorted(set(ids))]

    def work(self, context: WorkContext, item: Item) -> Write:
        run, operator = context.run, self._params.model
        rows = Trajectory.objects.of(run.project).filter(scenario=item.target_id, trace__isnull=False)
        rows = rows.played().filter(bundle_sha256=F("scenario__bundle_sha256"))
        chosen = set(rows_to_probe(run.project, self._params).values_list("pk", flat=True))
        known = list(rows.with_steps().select_related("text", "trace").order_by("id"))
        mine = [row for row in known if row.pk in chosen]
        found = self._divergences(mine) if self._params.steps == "divergences" else self._steps(mine)
        comparisons = [both for both in found if all(place.key or place.ended for place in both)]
        places = {place: None for both in comparisons for place in both}
        shared = _shared([row for row in known if row.model == operator])
        values = {
            place: StepValue(
                project_id=run.project_id,
                run=run,
                trajectory=place.trajectory,
                at=place.at,
                operator=operator,
                key=place.key,
                **_counts(place, shared),
            )
            for place in places
        }

        def write() -> Json:
            _add_earlier(run, operator, values.values())
            StepValue.objects.bulk_create(values.values())
            advantages = [
                StepAdvantage(
                    value=values[place],
                    against=values[other],
                    unchanged=place.unchanged,
                    place=""
                    if place.trajectory == other.trajectory
                    else place_of(place.trajectory, other.trajectory, place.at),
                )
                for place, other in comparisons
            ]
            StepAdvantage.objects.bulk_create(advantages)
            settle(StepAdvantage.objects.filter(pk__in=[row.pk for row in advantages]), self._params)
            return {"comparisons": len(advantages)}

        return write

    def _divergences(self, rows: Sequence[Trajectory]) -> list[tuple[ProbePlace, ProbePlace]]:
        """Return the first actions that differ between a kept and a rejected trajectory, those of most pairs first."""
        found: dict[str, list[tuple[ProbePlace, ProbePlace]]] = defaultdict(list)
        kept, rejected = [row for row in rows if row.keep], [row for row in rows if not row.keep]
        for one, other in product(kept, rejected):
            place = pair_sides(*(PairSide(row.text.steps, row.outcome, row.bundle_sha256) for row in (one, other)))
            if isinstance(place, Divergence) and place.at:
                found[place_of(one, other, place.at)].append((ProbePlace(one, place.at), ProbePlace(other, place.at)))
        most = sorted(found.values(), key=len, reverse=True)
        return [group[0] for group in most[: self._params.per_scenario]]

    def _steps(self, rows: Sequence[Trajectory]) -> Iterator[tuple[ProbePlace, ProbePlace]]:
        """Yield each step of the agent with the one before it."""
        for row in rows:
            for at, step in enumerate(row.text.steps):
                if at and step["source"] == "agent":
                    yield ProbePlace(row, at), ProbePlace(row, at - 1)


def _shared(rows: Iterable[Trajectory]) -> dict[str, dict[int, bool]]:
    """Return the rollouts that went through each state, and whether they were kept. Those that the machine ended say
    nothing."""
    found: dict[str, dict[int, bool]] = defaultdict(dict)
    for row in rows:
        if row.outcome not in NEVER_NEGATIVE:
            for key in filter(None, row.trace.keys):
                found[key][row.pk] = row.keep
    return found


def _counts(place: ProbePlace, shared: dict[str, dict[int, bool]]) -> dict[str, object]:
    """Return the counts of a value by the rollouts at hand, without the one whose outcome chose the place."""
    if place.ended:
        return {"ended": True, "solved": int(place.trajectory.keep)}
    others = [keep for pk, keep in shared.get(place.key, {}).items() if pk != place.trajectory.pk]
    return {"shared": len(others), "shared_solved": sum(others)}


def _add_earlier(run: Run, operator: str, values: Iterable[StepValue]) -> None:
    """Add the rollouts of earlier runs in the same states, each once."""
    rows = list(values)
    earlier = StepValue.objects.filter(
        project=run.project_id, operator=operator, key__in={row.key for row in rows} - {""}
    )
    found: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    for of_run, key, solved, rollouts in earlier.exclude(run=run).values_list("run_id", "key", "solved", "rollouts"):
        found[key][of_run] = solved, rollouts
    for row in rows:
        for solved, rollouts in found[row.key].values() if row.key else ():
            row.shared_solved += solved
            row.shared += rollouts
