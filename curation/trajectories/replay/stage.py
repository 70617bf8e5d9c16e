"""Stage `replay`: a recorded trajectory's commands in a fresh sandbox, and whether they come to the same."""

from collections.abc import Iterable

from django.db import transaction

from curation.runs.kinds import ItemFailed, ItemSkipped, Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, Run
from curation.runs.workers.sandbox import backend, labels_of
from curation.samples.models import Flag, Sample
from curation.scenarios.bundles.document import setup_of, stored_bundle
from curation.trajectories.models import Replay, ReplayState, Trajectory
from curation.trajectories.params import ReplayParams, RolloutParams
from curation.trajectories.rollout.record import priority_of_trajectory
from curation.trajectories.rollout.stage import limits_of
from curation.trajectories.selection import trajectories_in
from curation.web.text.storable import storable_json
from sandbox.agent.action import Ending
from sandbox.agent.replay import Difference, Recorded, run_replay
from sandbox.agent.shell_environment import Task
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.protocol import Limits

CHUNK = 2000
EDITED = "its scenario was edited since, so there is nothing to compare with"
BROKEN = "its sandbox broke, so what was recorded is no whole rollout"


class ReplayStage:
    name = "replay"
    queue = "sandbox"

    def __init__(self, params: ReplayParams) -> None:
        self._params = params

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        for row in (
            trajectories_in(run.project, self._params.filter).select_related("scenario").order_by("id").iterator(CHUNK)
        ):
            edited = row.bundle_sha256 != row.scenario.bundle_sha256
            reason = EDITED if edited else BROKEN if row.outcome == "infra_error" else ""
            yield PlannedItem(str(row.pk), row.pk, skipped=reason)

    def work(self, context: WorkContext, item: Item) -> Write:
        found = Trajectory.objects.of(context.run.project).to_replay().filter(pk=item.target_id or 0).first()
        if found is None:
            raise ItemSkipped("it was deleted")
        if found.bundle_sha256 != found.scenario.bundle_sha256:
            raise ItemSkipped(EDITED)
        bundle, limits = stored_bundle(found.scenario.text.bundle), _limits_of(found)
        rooms = backend()
        task = Task(setup_of(bundle, limits=limits, labels=labels_of(item)), bundle.checker, bundle.expected_terminal)
        ending = Ending(found.terminal, found.panic_reason) if found.terminal else None
        recorded = Recorded(found.text.turns, ending, found.checker_passed)
        try:
            verdict = run_replay(
                task=task,
                recorded=recorded,
                open_session=rooms.session,
                command_seconds=limits.command_seconds,
                checkpoint=context.checkpoint,
            )
        except (SandboxFailed, SetupRefused) as failed:
            raise ItemFailed(f"nothing is known of it, the sandbox failed: {failed}") from failed
        return lambda: _save(found.pk, context.run, verdict.differences, rooms.name)


def _limits_of(trajectory: Trajectory) -> Limits:
    """Those of its rollout, where that is still there."""
    given = (
        trajectory.run.params if trajectory.run and trajectory.run.kind == "rollout" else {"model": trajectory.model}
    )
    return limits_of(RolloutParams.model_validate(given))


@transaction.atomic
def _save(trajectory_id: int, run: Run, differences: tuple[Difference, ...], backend_name: str) -> Json:
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
    """A replay that differs is a doubt: its sample is reviewed sooner."""
    sample = Sample.objects.filter(pk=row.sample_id or 0).first()
    if sample is not None:
        priority = priority_of_trajectory(row, looping=bool(sample.flags & Flag.LOOP))
        Sample.objects.filter(pk=sample.pk).update(priority=priority)
