"""The stage `states`: the states of the trajectories that are probed, and of rollouts at hand in the same scenarios."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import ClassVar

from curation.projects.models import Project
from curation.runs.kinds import Json, PlannedItem, StageOf, WorkContext, Write
from curation.runs.models import Item, Run
from curation.runs.workers.sandbox import backend
from curation.trajectories.models import StateTrace, Trajectory, TrajectoryQuerySet
from curation.trajectories.params import ProbeParams, matching_trajectories
from curation.trajectories.replay import planned_replays, replay_in_sandbox, save_replay, trajectory_to_replay
from curation.trajectories.shell import positions_of
from curation.web.ids import IdList
from sandbox.agent.replay import ReplayVerdict, without_clock
from sandbox.gate.state import state_digest


class StatesStage(StageOf[ProbeParams]):
    name = "states"
    movable: ClassVar = True
    queue = "sandbox"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        chosen = rows_to_probe(run.project, self._params)
        same = Trajectory.objects.of(run.project).filter(
            model=self._params.model, scenario__in=chosen.values("scenario")
        )
        ids = set(chosen.values_list("pk", flat=True)) | set(same.values_list("pk", flat=True))
        return planned_replays(Trajectory.objects.filter(pk__in=IdList(sorted(ids))))

    def work(self, context: WorkContext, item: Item) -> Write:
        found = trajectory_to_replay(context, item)
        if StateTrace.objects.filter(trajectory=found, backend=backend().name).exists():
            return lambda: {"agrees": True, "known": True}
        verdict, machine = replay_in_sandbox(context, item, found, state_digest)
        trace = {"backend": machine, **_trace_of(found, verdict)} if verdict.agrees else None

        def write() -> Json:
            result = save_replay(found.pk, context.run, verdict.differences, machine)
            if trace and "agrees" in result:
                StateTrace.objects.update_or_create(trajectory_id=found.pk, defaults=trace)
            return result

        return write


def rows_to_probe(project: Project, params: ProbeParams) -> TrajectoryQuerySet:
    return matching_trajectories(project, params.filter).filter(scenario__isnull=False).order_by()


def count_not_probed(project: Project, params: ProbeParams) -> int:
    """Count matching trajectories that are no rollouts of scenarios. No rollout can begin in the middle of them: Harbor
    starts its agents at the beginning of a task only, and imported sessions and servers have no state here."""
    return matching_trajectories(project, params.filter).filter(scenario=None).count()


def _trace_of(trajectory: Trajectory, verdict: ReplayVerdict) -> dict[str, list[str]]:
    steps = trajectory.text.steps
    states, keys = [""] * len(steps), [""] * len(steps)
    shown: set[str] = set()
    found = iter(verdict.states)
    for turn, position in zip(trajectory.text.turns, positions_of(steps), strict=True):
        if turn["kind"] == "action":
            continue
        state = next(found)
        shown.add(without_clock(str(turn["text"])))
        ran = {(run.path, *run.arguments) for run in verdict.runs or () if run.pid < state.pid}
        states[position] = state.sha256
        keys[position] = _digest([trajectory.bundle_sha256, state.sha256, sorted(ran), sorted(shown)])
    return {"states": states, "keys": keys}


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
