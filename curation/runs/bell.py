"""The bell: tells workers that a run has work. A lost ring costs nothing but the reaper's next round."""

import logging

from django.db import connection
from django.utils import timezone
from kombu.exceptions import OperationalError

from curation.runs.kinds import stage_of
from curation.runs.models import Item, ItemState, Run, RunEvent

logger = logging.getLogger(__name__)

ITEMS_PER_RING = {"llm": 500, "sandbox": 1, "default": 1}
MOST_RINGS = 16


def ring(run_id: int) -> None:
    """Sends one message per shard of open items (at most `MOST_RINGS`; a worker that leaves work rings again)."""
    from curation.runs.tasks import work

    run = Run.objects.live().filter(pk=run_id).first()
    stage = stage_of(run) if run else None
    if run is None or stage is None:
        return
    size = ITEMS_PER_RING[stage.queue]
    pending = Item.objects.filter(run=run, stage=run.stage, state=ItemState.PENDING)
    waiting = pending.order_by()[: size * MOST_RINGS].count()
    Run.objects.filter(pk=run_id).update(rung_at=timezone.now())
    try:
        for _ in range(max(1, -(-waiting // size))):
            work.apply_async(args=(run_id,), queue=stage.queue, retry=False)
    except (OperationalError, OSError) as error:
        # The run is safe in the database; the reaper rings as soon as the broker is back.
        logger.warning("broker does not answer, run %s waits: %s", run_id, error)
        if not connection.in_atomic_block:
            RunEvent.objects.create(
                run_id=run_id, level=RunEvent.Level.WARNING, message="The broker does not answer; the run waits for it."
            )
