"""Stages whose items are worked on one at a time: imports, planning, scores, exports, sandboxes."""

import logging
import time
from typing import cast

from django.db import InterfaceError, OperationalError, transaction

from curation.runs.engine.claim import LeaseLost, claim, finish, release, set_aside
from curation.runs.engine.heartbeat import Heartbeat
from curation.runs.kinds import ItemFailed, ItemSkipped, Json, Stage, SyncStage, Write
from curation.runs.models import Item, ItemState, Run
from curation.web.problems import Problem
from curation.web.text.storable import storable

logger = logging.getLogger(__name__)
SHARD_SECONDS = 60.0


class Interrupted(Exception):
    """The run was cancelled or the lease lost; what is not committed is left to whoever goes on."""


class ItemContext:
    """What a stage may use while it works on an item."""

    def __init__(self, run: Run, heartbeat: Heartbeat) -> None:
        self.run = run
        self._heartbeat = heartbeat

    def checkpoint(self) -> None:
        """Raises `Interrupted` when the run has been stopped; long items call it between their batches."""
        if self._heartbeat.stopped:
            raise Interrupted("the run was stopped")

    def save_progress(self, item: Item, progress: Json, result: Json | None = None) -> None:
        """Keeps how far an item has come, inside the transaction that wrote it: the next claim goes on from there."""
        with transaction.atomic():
            if result is not None:
                Run.objects.hold(self.run.pk)
            held = Item.objects.filter(pk=item.pk, state=ItemState.CLAIMED, lease_owner=item.lease_owner)
            if held.update(data=progress) != 1:
                raise Interrupted("lease lost")
            if result is not None:
                row = Run.objects.select_for_update(no_key=True).get(pk=self.run.pk)
                Run.objects.filter(pk=self.run.pk).update(result={**row.result, **result})
        item.data = progress


def drive_sync(run: Run, stage: Stage, owner: str) -> None:
    """Takes one item after the other for about a minute; then the bell lets another run have its turn."""
    worker = cast(SyncStage, stage)
    until = time.monotonic() + SHARD_SECONDS
    with Heartbeat(run, owner) as heartbeat:
        context = ItemContext(run, heartbeat)
        while time.monotonic() < until and not heartbeat.stopped:
            items = claim(run=run, owner=owner, limit=1)
            if not items:
                return
            try:
                _end_item(worker, context, items[0], owner)
            except LeaseLost as error:
                logger.info("item %s left: %s", items[0].pk, error)
                release(run_id=run.pk, owner=owner)
            except Interrupted as error:
                logger.info("item %s left: %s", items[0].pk, error)
                release(run_id=run.pk, owner=owner)
                return


def _end_item(stage: SyncStage, context: ItemContext, item: Item, owner: str) -> None:
    """Errors of the database itself pass: the task ends, and the item's lease lapses."""
    try:
        finish(item=item, owner=owner, write=stage.work(context, item))
    except ItemFailed as failure:
        _set_aside(item, ItemState.FAILED, str(failure), failure.write)
    except ItemSkipped as skipped:
        _set_aside(item, ItemState.SKIPPED, str(skipped))
    except Problem as problem:
        _set_aside(item, ItemState.FAILED, problem.detail)
    except (LeaseLost, Interrupted, OperationalError, InterfaceError):
        raise
    except Exception as error:  # the one error boundary of a stage: a bug ends the item, never the worker
        logger.exception("item %s of run %s", item.pk, item.run_id)
        _set_aside(item, ItemState.FAILED, f"Internal error: {error!r}")


def _set_aside(item: Item, state: ItemState, reason: str, write: Write | None = None) -> None:
    set_aside(item=item, owner=item.lease_owner, state=state, reason=storable(reason), write=write)
