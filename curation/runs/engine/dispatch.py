"""Dispatch: tell workers that a run has work. A lost message costs nothing but the reaper's next round.

Each message carries the time of its dispatch. A new dispatch of a run makes its older messages outdated, and a worker
that leaves work sends its own message again. So a run never has more than `MAX_MESSAGES` valid ones waiting, and
cannot crowd out other runs.
"""

import logging
import time

from celery import current_app
from django.db import connection
from kombu.exceptions import OperationalError

from curation.runs.kinds import LlmStage, Stage, stage_of
from curation.runs.models import Item, ItemState, Run, RunEvent
from curation.web.database.queries import database_now
from curation.web.failures import failure_of

logger = logging.getLogger(__name__)

WORK = "curation.runs.tasks.work"
# A stage of model calls works on a shard at once; any other on one item at a time.
ITEMS_PER_SHARD = 500
MAX_MESSAGES = 16
# A broker that refuses connections costs nothing to try; one that is silent holds the caller.
SLOW_SECONDS, PAUSE_SECONDS = 1.0, 5.0
_paused = [0.0]
NO_BROKER = "The broker does not answer. The run continues when it is back."
# Retry once: the connection may be left over from before a restart of the broker.
RETRY_POLICY = {"max_retries": 1, "interval_start": 0.0, "interval_step": 0.0}


def dispatch(run_id: int) -> None:
    """Send one message per shard of open items, at most `MAX_MESSAGES`; earlier messages become outdated."""
    run = Run.objects.live().filter(pk=run_id).first()
    stage = stage_of(run) if run else None
    if run is None or stage is None:
        return
    size = shard_size(stage)
    pending = Item.objects.filter(run=run, stage=run.stage, state=ItemState.PENDING)
    waiting = pending.order_by()[: size * MAX_MESSAGES].count()
    now = database_now()
    Run.objects.filter(pk=run_id).update(dispatched_at=now)
    _send(run_id, now.isoformat(), stage.queue, times=max(1, -(-waiting // size)))


def shard_size(stage: Stage) -> int:
    """Items per message."""
    return min(ITEMS_PER_SHARD, stage.most_open) if isinstance(stage, LlmStage) else 1


def requeue(run_id: int, dispatched: str) -> None:
    """Send a worker's own message again after its shard, unless it is outdated."""
    run = Run.objects.live().filter(pk=run_id).first()
    stage = stage_of(run) if run else None
    if run is not None and stage is not None and not is_outdated(run, dispatched):
        _send(run_id, dispatched, stage.queue, times=1)


def is_outdated(run: Run, dispatched: str) -> bool:
    """Return whether the run was dispatched again since; work without a message ("") is never outdated."""
    return bool(dispatched) and run.dispatched_at is not None and run.dispatched_at.isoformat() != dispatched


def send_work(run_id: int, dispatched: str, queue: str) -> None:
    """Send the task by its name: the tasks import the engine, not the other way round."""
    current_app.send_task(WORK, args=(run_id, dispatched), queue=queue, retry=True, retry_policy=RETRY_POLICY)


def is_paused() -> bool:
    """Whether the broker was silent some seconds ago. Nothing is sent then: each try takes seconds."""
    return time.monotonic() < _paused[0]


def _send(run_id: int, dispatched: str, queue: str, *, times: int) -> None:
    began = time.monotonic()
    try:
        if is_paused():
            raise OperationalError("it did not answer some seconds ago")
        for _ in range(times):
            send_work(run_id, dispatched, queue)
    except (OperationalError, OSError) as error:
        # The run is safe in the database; the reaper dispatches it as soon as the broker is back.
        if time.monotonic() - began > SLOW_SECONDS:
            _paused[0] = time.monotonic() + PAUSE_SECONDS
        failure = failure_of(error)
        message = f"{failure.detail} The run continues then." if failure else NO_BROKER
        logger.warning("run %s waits: %s", run_id, error)
        if not connection.in_atomic_block and _last_message(run_id) != message:
            RunEvent.objects.create(run_id=run_id, level=RunEvent.Level.WARNING, message=message)


def _last_message(run_id: int) -> str | None:
    return RunEvent.objects.filter(run_id=run_id).order_by("-id").values_list("message", flat=True).first()
