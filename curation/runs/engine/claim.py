"""Claims: which worker works on which item, for how long, and how an item ends.

Every write to a run's items or calls locks the run's row first (`hold`), so that no two workers deadlock.

A worker that dies (a segmentation fault, too much memory) takes every item that it works on with it. They become
suspects: the items of one worker are tried again in two halves, each in a process of its own, and a half whose process
dies again is halved again. An item that is alone is failed after `MOST_DEATHS` deaths without progress in between. No
other is.

Several workers that die at the same time were restarted, or lost their machine or database: nobody is suspected. Shards
that share a process die together too: their items become suspects if that happens twice.

Two items that kill a worker each can die at the same time, again and again. So an item that was claimed `APART_AFTER`
times without an end is tried in a process of its own too: the worker that started the process sees that it died alone.
"""

import json
from collections.abc import Collection, Sequence
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import Exists, F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from curation.runs.calls.record import lose_calls
from curation.runs.engine.group_commit import count
from curation.runs.kinds import Json, Write
from curation.runs.models import LIVE, Call, CallStatus, Item, ItemState, Run, RunState
from curation.web.database.queries import database_now
from curation.web.text.figures import counted

MOST_DEATHS = 5
SUSPECT_AFTER = 2
APART_AFTER = 3
_SHARED = Q(suspects=None, claims__lt=APART_AFTER)  # tried in a process that works on others too


def only_suspects(run: Run) -> bool:
    """Whether all that is pending in the run's stage is tried in a process of its own."""
    pending = Item.objects.filter(run=run, stage=run.stage, state=ItemState.PENDING)
    return pending.exists() and not pending.filter(_SHARED).exists()


def pending_for(*, run: Run, owner: str, limit: int, alone: bool) -> list[Item]:
    """Return the pending items that `owner` may claim beside those that it works on, oldest first and locked.

    Suspects only if it is `alone` in its process.
    """
    stage = Item.objects.filter(run=run, stage=run.stage)
    pending = stage.filter(state=ItemState.PENDING).select_for_update(skip_locked=True, no_key=True).order_by("id")
    if not alone:
        return list(pending.filter(_SHARED)[:limit])
    mine = stage.filter(state=ItemState.CLAIMED, lease_owner=owner)
    works_apart = Exists(mine.exclude(suspects=None, claims__lte=APART_AFTER))
    found = list(pending.filter(_SHARED).exclude(works_apart)[:limit])
    if found or mine.exists():
        return found
    first = pending.first()
    return list(pending.filter(suspects=first.suspects)[:limit]) if first else []


def return_items(items: Sequence[Item], *, restarted: bool, shared: bool = False) -> str:
    """Make the claimed items of one dead worker pending again, or fail the one that kills its workers.

    `restarted`: other workers died at the same time; `shared`: other shards died with its process. Return a sentence
    for the run's log. Needs a transaction that holds the run.
    """
    if restarted:
        _return([item.pk for item in items])
        return f"Workers stopped responding together; pending again: {counted(len(items), 'item')}."
    if shared:
        suspected = [item.pk for item in items if item.deaths + 1 >= SUSPECT_AFTER]
        _of(suspected).update(suspects=suspected[0] if suspected else None)
        _return([item.pk for item in items], deaths=F("deaths") + 1)
        return f"A worker stopped responding; pending again: {counted(len(items), 'item')}."
    if len(items) > 1:
        half = (len(items) + 1) // 2
        for part in (items[:half], items[half:]):
            _return([item.pk for item in part], suspects=part[0].pk)
        return f"A worker stopped responding; pending again, in two halves: {counted(len(items), 'item')}."
    item = items[0]
    deaths = 1 if _made_progress(item) else item.deaths + 1
    if deaths < MOST_DEATHS:
        # The first time it is an accident, and the item keeps its place.
        _return([item.pk], suspects=item.pk if deaths > 1 else item.suspects, deaths=deaths)
        return f"A worker stopped responding; its item {item.key} is pending again (death {deaths} of {MOST_DEATHS})."
    reason = f"Given up: its worker died {counted(deaths, 'time')} while working on it alone."
    _of([item.pk]).update(
        state=ItemState.FAILED,
        reason=reason,
        deaths=deaths,
        lease_owner="",
        lease_until=None,
        finished_at=timezone.now(),
    )
    count(item.run_id, {"items_failed": 1})
    return f"Item {item.key} was given up: its worker died {counted(deaths, 'time')} while working on it alone."


def _return(ids: Collection[int], **changes: object) -> None:
    _of(ids).update(state=ItemState.PENDING, lease_owner="", lease_until=None, **changes)


def _of(ids: Collection[int]) -> QuerySet[Item]:
    return Item.objects.filter(pk__in=ids, state=ItemState.CLAIMED)


def _made_progress(item: Item) -> bool:
    """Whether a model answered since the item was claimed. Stages that store progress set `deaths` to 0 themselves."""
    return Call.objects.filter(item=item, status=CallStatus.OK, created_at__gte=F("item__claimed_at")).exists()


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

    At most `most` of the run's items are claimed at a time, over all workers. Suspects come last, by themselves, and
    only if the owner is `alone` in its process.
    """
    with transaction.atomic():
        Run.objects.hold(run.pk)
        alive = Run.objects.filter(pk=run.pk, state__in=LIVE, stage=run.stage)
        begun = alive.values_list("state", "started_at").first()
        if begun is None:
            return []
        if most is not None:
            claimed = Item.objects.filter(run=run, stage=run.stage, state=ItemState.CLAIMED)
            limit = max(0, min(limit, most - claimed.count()))
        items = pending_for(run=run, owner=owner, limit=limit, alone=alone)
        if not items:
            return []
        ids = [item.pk for item in items]
        Item.objects.filter(pk__in=ids, state=ItemState.PENDING).update(
            state=ItemState.CLAIMED,
            lease_owner=owner,
            lease_until=Now() + LEASE,
            claims=F("claims") + 1,
            claimed_at=timezone.now(),  # compared with the calls of this same worker
        )
        if begun[0] == RunState.QUEUED or begun[1] is None:
            alive.update(state=RunState.RUNNING, started_at=timezone.now())
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
        ids = list(mine.values_list("pk", flat=True))
        if not ids:
            return 0
        lose_calls(ids, "its run was stopped before the answer")
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
