"""Claims: who works on which item, for how long, and how an item ends.

Whoever writes to a run's items or calls locks the run's row first (`hold`), so that no two wait in a circle.
"""

import json
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from curation.runs.calls.record import lose_calls
from curation.runs.engine.counters import count
from curation.runs.kinds import Json, Write
from curation.runs.models import LIVE, Item, ItemState, Run, RunState

LEASE = timedelta(seconds=15)
# An item that was claimed this often without ending takes its workers down with it.
MOST_CLAIMS = 6
# Written out: it ends every item, and Django takes ten times as long to build it as a database to do it.
END_ITEM = (
    "UPDATE runs_item SET state = %s, reason = %s, result = %s, finished_at = %s, lease_owner = '', lease_until = NULL "
    "WHERE id = %s AND state = 'claimed' AND lease_owner = %s"
)
COUNTERS = {ItemState.DONE: "items_done", ItemState.FAILED: "items_failed", ItemState.SKIPPED: "items_skipped"}


class LeaseLost(Exception):
    """Someone else has the item by now; what was worked out for it is dropped."""


def claim(*, run: Run, owner: str, limit: int, most: int | None = None) -> list[Item]:
    """Up to `limit` of the run's oldest pending items, now leased to `owner`; empty when there are none or it ended.

    Never so many that more than `most` of the run's items would be leased, to whomever.
    """
    now = timezone.now()
    with transaction.atomic():
        Run.objects.hold(run.pk)
        alive = Run.objects.filter(pk=run.pk, state__in=LIVE, stage=run.stage)
        if not alive.exists():
            return []
        if most is not None:
            claimed = Item.objects.filter(run=run, stage=run.stage, state=ItemState.CLAIMED)
            limit = max(0, min(limit, most - claimed.count()))
        items = list(
            Item.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(run=run, stage=run.stage, state=ItemState.PENDING)
            .order_by("id")[:limit]
        )
        ids = [item.pk for item in items]
        Item.objects.filter(pk__in=ids, state=ItemState.PENDING).update(
            state=ItemState.CLAIMED, lease_owner=owner, lease_until=now + LEASE, claims=F("claims") + 1
        )
        if items:
            alive.filter(Q(state=RunState.QUEUED) | Q(started_at=None)).update(state=RunState.RUNNING, started_at=now)
    for item in items:
        item.claims += 1
        item.lease_owner = owner
    return items


def extend(*, owner: str) -> int:
    """The heartbeat: pushes the end of the leases of `owner` out; of how many.

    Items that are being ended at this moment are passed over instead of waited for.
    """
    with transaction.atomic():
        mine = Item.objects.filter(lease_owner=owner, state=ItemState.CLAIMED)
        ids = list(mine.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True))
        return mine.filter(pk__in=ids).update(lease_until=timezone.now() + LEASE)


def release(*, run_id: int, owner: str) -> int:
    """Gives back what `owner` has claimed and not ended, untried. Its calls under way are nobody's any more."""
    with transaction.atomic():
        Run.objects.hold(run_id)
        mine = Item.objects.filter(run_id=run_id, lease_owner=owner, state=ItemState.CLAIMED)
        lose_calls(list(mine.values_list("pk", flat=True)), "not waited for: its run was stopped")
        return mine.update(state=ItemState.PENDING, lease_owner="", lease_until=None, claims=F("claims") - 1)


def finish(*, item: Item, owner: str, write: Write) -> None:
    """Ends the item as done and writes its result, in one transaction; raises `LeaseLost` and writes nothing."""
    with transaction.atomic():
        Run.objects.hold(item.run_id)
        end_done(item=item, owner=owner, write=write)


def set_aside(*, item: Item, owner: str, state: ItemState, reason: str, write: Write | None = None) -> None:
    """Ends the item as failed or skipped, with the reason and what is to be kept all the same."""
    with transaction.atomic():
        Run.objects.hold(item.run_id)
        end_aside(item=item, owner=owner, state=state, reason=reason, write=write)


def end_done(*, item: Item, owner: str, write: Write) -> None:
    """`finish` inside a transaction that holds the run and is rolled back when this raises."""
    _end(item, owner, ItemState.DONE, reason="", result=write())


def end_aside(*, item: Item, owner: str, state: ItemState, reason: str, write: Write | None = None) -> None:
    """`set_aside` inside a transaction that holds the run and is rolled back when this raises."""
    lose_calls([item.pk], "its item failed meanwhile")
    _end(item, owner, state, reason=reason, result=write() if write is not None else {})


def _end(item: Item, owner: str, state: ItemState, *, reason: str, result: Json) -> None:
    ended = (state.value, reason, json.dumps(result), connection.ops.adapt_datetimefield_value(timezone.now()))
    with connection.cursor() as cursor:
        cursor.execute(END_ITEM, [*ended, item.pk, owner])
        if cursor.rowcount != 1:
            raise LeaseLost(f"item {item.pk}")
    count(item.run_id, {COUNTERS[state]: 1})
