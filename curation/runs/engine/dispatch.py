"""The bell: tells workers that a run has work. A lost ring costs nothing but the reaper's next round.

Every ring carries the time at which it was rung. A new ring for a run makes its older ones void, and a worker that
leaves work passes its own ring on: however often someone rings, a run never has more than `MOST_RINGS` valid ones
waiting, so that it cannot crowd out other runs.
"""

import logging

from django.db import connection
from django.utils import timezone
from kombu.exceptions import OperationalError

from curation.runs.kinds import LlmStage, Stage, stage_of
from curation.runs.models import Item, ItemState, Run, RunEvent

logger = logging.getLogger(__name__)

# A stage of model calls drives a shard at once; any other takes one item at a time.
ITEMS_PER_SHARD = 500
MOST_RINGS = 16
NO_BROKER = "The broker does not answer; the run waits for it."
# One more try at once: the connection may be left over from before a restart of the broker.
RETRY_POLICY = {"max_retries": 1, "interval_start": 0.0, "interval_step": 0.0}


def ring(run_id: int) -> None:
    """Sends one message per shard of open items, at most `MOST_RINGS`; those sent before are void."""
    run = Run.objects.live().filter(pk=run_id).first()
    stage = stage_of(run) if run else None
    if run is None or stage is None:
        return
    size = shard_size(stage)
    pending = Item.objects.filter(run=run, stage=run.stage, state=ItemState.PENDING)
    waiting = pending.order_by()[: size * MOST_RINGS].count()
    now = timezone.now()
    Run.objects.filter(pk=run_id).update(rung_at=now)
    _send(run_id, now.isoformat(), stage.queue, times=max(1, -(-waiting // size)))


def shard_size(stage: Stage) -> int:
    """Items that one ring is for."""
    return min(ITEMS_PER_SHARD, stage.most_open) if isinstance(stage, LlmStage) else 1


def pass_on(run_id: int, rung: str) -> None:
    """A worker's shard is over and work is left: its own ring goes to the end of the queue, unless it is void."""
    run = Run.objects.live().filter(pk=run_id).first()
    stage = stage_of(run) if run else None
    if run is not None and stage is not None and not is_void(run, rung):
        _send(run_id, rung, stage.queue, times=1)


def is_void(run: Run, rung: str) -> bool:
    """Whether the workers were called again since this ring; a drive that nobody rang for ("") always counts."""
    return bool(rung) and run.rung_at is not None and run.rung_at.isoformat() != rung


def _send(run_id: int, rung: str, queue: str, *, times: int) -> None:
    from curation.runs.tasks import work

    try:
        for _ in range(times):
            work.apply_async(args=(run_id, rung), queue=queue, retry=True, retry_policy=RETRY_POLICY)
    except (OperationalError, OSError) as error:
        # The run is safe in the database; the reaper rings as soon as the broker is back.
        logger.warning("broker does not answer, run %s waits: %s", run_id, error)
        if not connection.in_atomic_block and _last_message(run_id) != NO_BROKER:
            RunEvent.objects.create(run_id=run_id, level=RunEvent.Level.WARNING, message=NO_BROKER)


def _last_message(run_id: int) -> str | None:
    return RunEvent.objects.filter(run_id=run_id).order_by("-id").values_list("message", flat=True).first()
