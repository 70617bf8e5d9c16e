"""Claims: which worker works on which item, for how long, and how an item ends.

Every write to a run's items or calls locks the run's row first (`hold`), so that no two workers deadlock.
"""

import json
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from curation.runs.calls.record import lose_calls
from curation.runs.engine.counters import count
from curation.runs.engine.suspects import pending_for
from curation.runs.kinds import Json, Write
from curation.runs.models import LIVE, Item, ItemState, Run, RunState
from curation.web.database.clock import database_now

LEASE = timedelta(seconds=15)
# Raw: it ends every item, and Django takes ten times as long to build the query as the database to run it.
END_ITEM = (
    "UPDATE runs_item SET state = %s, reason = %s, result = %s, finished_at = %s, lease_owner = '', lease_until = NULL "
    "WHERE id = %s AND state = 'claimed' AND lease_owner = %s"
)
COUNTERS = {ItemState.DONE: "items_done", ItemState.FAILED: "items_failed", ItemState.SKIPPED: "items_skipped"}


class LeaseLost(Exception):
    """Another worker has the item by now; the result is dropped."""


def claim(*, run: Run, owner: str, limit: int, most: int | None = None, alone: bool = True) -> list[Item]:
    """Claim up to `limit` of the run's oldest pending items for `owner`; none if the run has ended.

    At most `most` of the run's items are claimed at a time, over all workers. Suspects
    (`curation.runs.engine.suspects`) come last, by themselves, and only if the owner is `alone` in its process.
    """
    with transaction.atomic():
        Run.objects.hold(run.pk)
        alive = Run.objects.filter(pk=run.pk, state__in=LIVE, stage=run.stage)
        if not alive.exists():
            return []
        if most is not None:
            claimed = Item.objects.filter(run=run, stage=run.stage, state=ItemState.CLAIMED)
            limit = max(0, min(limit, most - claimed.count()))
        items = pending_for(run=run, owner=owner, limit=limit, alone=alone)
        ids = [item.pk for item in items]
        Item.objects.filter(pk__in=ids, state=ItemState.PENDING).update(
            state=ItemState.CLAIMED,
            lease_owner=owner,
            lease_until=Now() + LEASE,
            claims=F("claims") + 1,
            claimed_at=timezone.now(),  # compared with the calls of this same worker
        )
        if items:
            alive.filter(Q(state=RunState.QUEUED) | Q(started_at=None)).update(
                state=RunState.RUNNING, started_at=timezone.now()
            )
    now = database_now() if any(item.waiting_since for item in items) else None
    for item in items:
        item.claims += 1
        item.lease_owner = owner
        item.waited = (now - item.waiting_since).total_seconds() if now and item.waiting_since else 0.0
    return items


def extend(*, owner: str) -> int:
    """Extend the leases of `owner`; return their number.

    Items that another transaction is ending right now are skipped.
    """
    with transaction.atomic():
        mine = Item.objects.filter(lease_owner=owner, state=ItemState.CLAIMED)
        ids = list(mine.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True))
        return mine.filter(pk__in=ids).update(lease_until=Now() + LEASE)


def release(*, run_id: int, owner: str) -> int:
    """Return the items that `owner` has claimed and not ended to `pending`; calls in progress are lost."""
    with transaction.atomic():
        Run.objects.hold(run_id)
        mine = Item.objects.filter(run_id=run_id, lease_owner=owner, state=ItemState.CLAIMED)
        lose_calls(list(mine.values_list("pk", flat=True)), "its run was stopped before the answer")
        return mine.update(state=ItemState.PENDING, lease_owner="", lease_until=None, claims=F("claims") - 1)


def finish(*, item: Item, owner: str, write: Write) -> None:
    """End the item as done and write its result in one transaction, or raise `LeaseLost` and write nothing."""
    with transaction.atomic():
        Run.objects.hold(item.run_id)
        end_done(item=item, owner=owner, write=write)


def give_up(*, item: Item, owner: str, state: ItemState, reason: str, write: Write | None = None) -> None:
    """End the item as failed or skipped, with a reason and optional partial results."""
    with transaction.atomic():
        Run.objects.hold(item.run_id)
        end_given_up(item=item, owner=owner, state=state, reason=reason, write=write)


def end_done(*, item: Item, owner: str, write: Write) -> None:
    """As `finish`, in a transaction that has locked the run and rolls back on errors."""
    _end(item, owner, ItemState.DONE, reason="", result=write())


def end_given_up(*, item: Item, owner: str, state: ItemState, reason: str, write: Write | None = None) -> None:
    """As `give_up`, in a transaction that has locked the run and rolls back on errors."""
    lose_calls([item.pk], "its item failed first")
    _end(item, owner, state, reason=reason, result=write() if write is not None else {})


def _end(item: Item, owner: str, state: ItemState, *, reason: str, result: Json) -> None:
    ended = (state.value, reason, json.dumps(result), connection.ops.adapt_datetimefield_value(timezone.now()))
    with connection.cursor() as cursor:
        cursor.execute(END_ITEM, [*ended, item.pk, owner])
        if cursor.rowcount != 1:
            raise LeaseLost(f"item {item.pk}")
    count(item.run_id, {COUNTERS[state]: 1})
