"""Replay: run a trajectory's recorded commands in a fresh sandbox and compare outputs, terminal and checker."""

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from django.db import transaction
from django.db.models import Count

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.runs.kinds import ItemFailed, ItemSkipped, Json, PlannedItem, StageOf, WorkContext, Write
from curation.runs.launch import launch
from curation.runs.models import Item, ItemState, Run
from curation.runs.workers.sandbox import backend, labels_of
from curation.samples.models import Flag, Sample
from curation.scenarios.bundles.document import setup_of, stored_bundle
from curation.trajectories.models import Outcome, Replay, ReplayState, Trajectory, TrajectoryQuerySet
from curation.trajectories.params import ReplayParams, RolloutParams, matching_trajectories
from curation.trajectories.rollout.record import priority_of_trajectory
from curation.trajectories.rollout.stage import limits_of
from curation.web.problems import Conflict
from curation.web.text.storable import storable_json
from sandbox.agent.action import Ending
from sandbox.agent.replay import RecordedTrajectory, ReplayDifference, ReplayVerdict, run_replay
from sandbox.agent.shell_environment import ShellTask
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.protocol import SandboxSession, SessionLimits, StateDigest

CHUNK = 2000
SERVED = "it was played on a server, not in a sandbox"
IMPORTED = "it was imported"
EDITED = "its scenario was edited since, so there is nothing to compare with"
BROKEN = "its sandbox broke, so its recording is incomplete"


def replay_refusal(trajectory: Trajectory) -> str:
    """Return why a trajectory cannot be replayed, or "". Needs its scenario."""
    if trajectory.scenario is None:
        return IMPORTED if trajectory.is_imported else SERVED
    if trajectory.bundle_sha256 != trajectory.scenario.bundle_sha256:
        return EDITED
    return BROKEN if trajectory.outcome == Outcome.INFRA_ERROR else ""


def start_replay(*, access: Access, trajectory: Trajectory) -> Run:
    """Launch a replay of this trajectory alone. Raise `Conflict` if it cannot be replayed."""
    access.require(Scope.RUN)
    refusal = replay_refusal(trajectory)
    if refusal:
        raise Conflict(f"Trajectory {trajectory.pk} cannot be replayed: {refusal}.", code="not_replayable")
    params = {"filter": {"id": str(trajectory.pk)}}
    return launch(project=access.project, kind="replay", params=params, user=access.user)


class ReplayStage(StageOf[ReplayParams]):
    name = "replay"
    movable: ClassVar = True
    queue = "sandbox"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        return planned_replays(matching_trajectories(run.project, self._params.filter))

    def work(self, context: WorkContext, item: Item) -> Write:
        found = trajectory_to_replay(context, item)
        verdict, machine = replay_in_sandbox(context, item, found)
        return lambda: save_replay(found.pk, context.run, verdict.differences, machine)


def planned_replays(rows: TrajectoryQuerySet) -> Iterator[PlannedItem]:
    """Yield an item for each trajectory, skipped if it cannot be replayed."""
    for row in rows.select_related("scenario").order_by("id").iterator(CHUNK):
        yield PlannedItem(str(row.pk), row.pk, skipped=replay_refusal(row))


def trajectory_to_replay(context: WorkContext, item: Item) -> Trajectory:
    """Raises `ItemSkipped` if it was deleted."""
    found = Trajectory.objects.of(context.run.project).to_replay().filter(pk=item.target_id or 0).first()
    if found is None:
        raise ItemSkipped("it was deleted")
    return found


def replay_in_sandbox(
    context: WorkContext, item: Item, found: Trajectory, digest: Callable[[SandboxSession], StateDigest] | None = None
) -> tuple[ReplayVerdict, str]:
    """Return the verdict and the name of the backend; with `digest` also the states. Needs `to_replay()`. Raises
    `ItemSkipped` for a trajectory that cannot be compared, and `ItemFailed`."""
    scenario = found.scenario
    if scenario is None or found.bundle_sha256 != scenario.bundle_sha256:
        raise ItemSkipped(replay_refusal(found))
    bundle, limits = stored_bundle(scenario.text.bundle), limits_of_rollout(found)
    machine = backend()
    task = ShellTask(setup_of(bundle, limits=limits, labels=labels_of(item)), bundle.checker, bundle.expected_terminal)
    ending = Ending(found.terminal, found.panic_reason) if found.terminal else None
    recorded = RecordedTrajectory(found.text.turns, ending, found.checker_passed)
    try:
        verdict = run_replay(
            task=task,
            recorded=recorded,
            open_session=machine.session,
            command_seconds=limits.command_seconds,
            checkpoint=context.checkpoint,
            digest=digest,
        )
    except (SandboxFailed, SetupRefused) as failed:
        raise ItemFailed(f"not compared, because the sandbox failed: {failed}") from failed
    return verdict, machine.name


def limits_of_rollout(trajectory: Trajectory) -> SessionLimits:
    """The limits of its rollout, or the defaults if that run is deleted."""
    run = trajectory.run
    given = run.params if run and run.kind == "rollout" else {"model": trajectory.model}
    return limits_of(RolloutParams.model_validate(given).command_timeout)


@transaction.atomic
def save_replay(trajectory_id: int, run: Run, differences: tuple[ReplayDifference, ...], backend_name: str) -> Json:
    """Save a replay of the trajectory, in the transaction that ends the item."""
    row = Trajectory.objects.filter(pk=trajectory_id).first()
    if row is None:
        return {"left": "it was deleted meanwhile"}
    agrees = not differences
    Replay.objects.create(
        trajectory=row,
        run=run,
        agrees=agrees,
        differences=storable_json([difference.as_json() for difference in differences]),
        backend=backend_name,
    )
    row.replay = ReplayState.AGREES if agrees else ReplayState.DIFFERS
    row.save(update_fields=["replay"])
    _reorder(row)
    return {"agrees": agrees, "differences": len(differences)}


def _reorder(row: Trajectory) -> None:
    """Move the sample of a replay that differs forward in the review queue."""
    sample = Sample.objects.filter(pk=row.sample_id or 0).first()
    if sample is not None:
        priority = priority_of_trajectory(row, looping=bool(sample.flags & Flag.LOOP))
        Sample.objects.filter(pk=sample.pk).update(priority=priority)


def replay_figures(run: Run) -> Json:
    """The result of a replay run: how many agree and differ, and the reasons of those skipped."""
    rows = Item.objects.filter(run=run, stage="replay").order_by()
    done = dict(rows.filter(state=ItemState.DONE).values_list("result__agrees").annotate(n=Count("id")))
    skipped = rows.filter(state=ItemState.SKIPPED).values_list("reason").annotate(n=Count("id"))
    return {"agree": done.get(True, 0), "differ": done.get(False, 0), "skipped": dict(skipped)}
