"""Claims: who works on which item, for how long, and how an item ends."""

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from curation.runs.kinds import Write
from curation.runs.models import LIVE, Item, ItemState, Run, RunState

LEASE = timedelta(seconds=15)
# An item that was claimed this often without ending takes its workers down with it.
MOST_CLAIMS = 6


class LeaseLost(Exception):
    """Someone else has the item by now; what was worked out for it is dropped."""


def claim(*, run: Run, owner: str, limit: int) -> list[Item]:
    """Up to `limit` of the run's oldest pending items, now leased to `owner`; empty when there are none or it ended."""
    now = timezone.now()
    with transaction.atomic():
        alive = Run.objects.filter(pk=run.pk, state__in=LIVE, stage=run.stage)
        if not alive.exists():
            return []
        items = list(
            Item.objects.select_for_update(skip_locked=True)
            .filter(run=run, stage=run.stage, state=ItemState.PENDING)
            .order_by("id")[:limit]
        )
        ids = [item.pk for item in items]
        Item.objects.filter(pk__in=ids, state=ItemState.PENDING).update(
            state=ItemState.CLAIMED, lease_owner=owner, lease_until=now + LEASE, claims=F("claims") + 1
        )
        if items:
            alive.filter(state=RunState.QUEUED).update(state=RunState.RUNNING, started_at=now)
    for item in items:
        item.claims += 1
    return items


def extend(*, owner: str) -> int:
    """The heartbeat: pushes the end of all leases of `owner` out; how many it still has."""
    mine = Item.objects.filter(lease_owner=owner, state=ItemState.CLAIMED)
    return mine.update(lease_until=timezone.now() + LEASE)


def release(*, owner: str) -> int:
    """Gives back what `owner` has claimed and not ended, untried."""
    mine = Item.objects.filter(lease_owner=owner, state=ItemState.CLAIMED)
    return mine.update(state=ItemState.PENDING, lease_owner="", lease_until=None, claims=F("claims") - 1)


def finish(*, item: Item, owner: str, write: Write) -> None:
    """Ends the item as done and writes its result, in one transaction; raises `LeaseLost` and writes nothing."""
    with transaction.atomic():
        _end(item, owner, ItemState.DONE, "")
        result = write()
        if result:
            Item.objects.filter(pk=item.pk).update(result=result)


def set_aside(*, item: Item, owner: str, state: ItemState, reason: str, write: Write | None = None) -> None:
    """Ends the item as failed or skipped, with the reason and what is to be kept all the same."""
    with transaction.atomic():
        _end(item, owner, state, reason)
        if write is not None:
            Item.objects.filter(pk=item.pk).update(result=write())


def _end(item: Item, owner: str, state: ItemState, reason: str) -> None:
    mine = Item.objects.filter(pk=item.pk, state=ItemState.CLAIMED, lease_owner=owner)
    ended = mine.update(state=state, reason=reason, lease_owner="", lease_until=None, finished_at=timezone.now())
    if ended != 1:
        raise LeaseLost(f"item {item.pk}")
    counter = {ItemState.DONE: "items_done", ItemState.FAILED: "items_failed", ItemState.SKIPPED: "items_skipped"}[
        state
    ]
    Run.objects.filter(pk=item.run_id).update(**{counter: F(counter) + 1})


def owned(owner: str, ids: Sequence[int]) -> bool:
    """Whether `owner` still holds all these items."""
    held = Item.objects.filter(pk__in=ids, lease_owner=owner, state=ItemState.CLAIMED)
    return held.count() == len(ids)
