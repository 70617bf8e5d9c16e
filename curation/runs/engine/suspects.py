"""Find the item that kills its workers.

A worker that dies (a segmentation fault, too much memory) takes every item that it works on with it. They become
suspects: the items of one worker are tried again in two halves, each in a process of its own, and a half whose process
dies again is halved again. An item that is alone is failed after `MOST_DEATHS` deaths without progress in between. No
other is.

Several workers that die at the same time were restarted, or lost their machine or database: nobody is suspected. Shards
that share a process die together too: their items become suspects if that happens twice.

Two items that kill a worker each can die at the same time, again and again. So an item that was claimed `APART_AFTER`
times without an end is tried in a process of its own too: the worker that started the process sees that it died alone.
"""

from collections.abc import Collection, Sequence

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from curation.runs.engine.counters import count
from curation.runs.models import Call, CallStatus, Item, ItemState, Run
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
    if mine.exclude(suspects=None, claims__lte=APART_AFTER).exists():
        return []
    found = list(pending.filter(_SHARED)[:limit])
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
    if item.claimed_at is None:
        return False
    return Call.objects.filter(item=item, status=CallStatus.OK, created_at__gte=item.claimed_at).exists()
