"""The reaper: continue the work of a dead worker, a lost message or a restarted broker."""

import logging
import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import Error, connection, transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from curation.runs.calls.record import lose_calls
from curation.runs.engine.advance import advance, fail_run_on_error
from curation.runs.engine.claim import LEASE, return_items
from curation.runs.engine.dispatch import dispatch
from curation.runs.engine.waiting import wake_due
from curation.runs.models import Call, CallStatus, Item, ItemState, Run, RunEvent
from curation.web.database.queries import database_now

logger = logging.getLogger(__name__)
EVERY_SECONDS = 5.0
DISPATCH_AGAIN = timedelta(seconds=10)
# Longer than two shards: the workers that got the last messages may all be gone, although one still works on the run.
DISPATCH_MORE = timedelta(seconds=300)
# No call takes that long: its worker had lost the item, and died.
FORGOTTEN = timedelta(hours=2)
# Workers that stop within this time were restarted, or lost their machine or database; three heartbeats.
TOGETHER = timedelta(seconds=6)


def reap_all() -> None:
    """One round: return expired leases, wake items whose endpoint is up, advance stuck runs, dispatch pending items.

    Any number of workers may do this at once. An error in one run does not stop the others.
    """
    now = database_now()
    for dead in _dead_workers(now):
        _return_claimed(dead, Q(lease_until__lt=now))
    for run_id in sorted(set(_forgotten_calls().values_list("run_id", flat=True))):
        _lose_forgotten(run_id)
    wake_due()
    quiet = Run.objects.live().filter(Q(dispatched_at=None) | Q(dispatched_at__lt=now - DISPATCH_AGAIN))
    waiting = Item.objects.filter(run=OuterRef("pk"), stage=OuterRef("stage"), state=ItemState.PENDING)
    claimed = Item.objects.filter(run=OuterRef("pk"), stage=OuterRef("stage"), state=ItemState.CLAIMED)
    found = quiet.annotate(waits=Exists(waiting), works=Exists(claimed))
    for run_id, dispatched_at, waits, works in list(found.values_list("pk", "dispatched_at", "waits", "works")):
        with fail_run_on_error(run_id):
            _go_on(run_id, dispatched_at, waits, works)


def _go_on(run_id: int, dispatched_at: datetime | None, waits: bool, works: bool) -> None:
    if not waits and not works:
        advance(run_id)
    elif waits and (not works or dispatched_at is None or dispatched_at < database_now() - DISPATCH_MORE):
        dispatch(run_id)


@dataclass(frozen=True, slots=True)
class _Dead:
    """A worker whose leases have expired, at `last` the latest. `restarted`: others stopped at the same time; `shared`:
    other shards of the same process did."""

    run_id: int
    owner: str
    last: datetime
    restarted: bool = False
    shared: bool = False

    @property
    def process(self) -> str:
        return self.owner.rpartition(":")[0] or self.owner

    def stopped_with(self, others: "list[_Dead]") -> "_Dead":
        """Return it with the facts about the others."""
        together = [one for one in others if abs(one.last - self.last) < TOGETHER and one.owner != self.owner]
        restarted = any(one.process != self.process for one in together)
        return replace(self, restarted=restarted, shared=bool(together) and not restarted)


def _dead_workers(now: datetime) -> list[_Dead]:
    """Return the workers whose leases have expired; wait a little while others are silent, to judge them together."""
    silent = Item.objects.filter(state=ItemState.CLAIMED, lease_until__lt=now + LEASE - TOGETHER).order_by()
    found = [
        _Dead(run_id, owner, last)
        for run_id, owner, last in silent.values_list("run_id", "lease_owner").annotate(last=Max("lease_until"))
    ]
    expired = [one for one in found if one.last < now]
    if len(expired) < len(found):
        expired = [one for one in expired if one.last < now - TOGETHER]
    return [one.stopped_with(found) for one in sorted(expired, key=lambda one: one.run_id)]


def return_items_of(*, run_id: int, owner: str) -> None:
    """Return the items of a worker that was seen to die alone, without waiting for its leases."""
    _return_claimed(_Dead(run_id, owner, database_now()), Q())


def _return_claimed(dead: _Dead, which: Q) -> None:
    """Return the items of a dead worker, or fail the one that kills its workers."""
    with transaction.atomic():
        Run.objects.hold(dead.run_id)
        items = list(
            Item.objects.select_for_update(skip_locked=True, no_key=True)
            .filter(which, run_id=dead.run_id, state=ItemState.CLAIMED, lease_owner=dead.owner)
            .order_by("id")
        )
        if not items:
            return
        lose_calls([item.pk for item in items], "its worker stopped responding")
        message = return_items(items, restarted=dead.restarted, shared=dead.shared)
        RunEvent.objects.create(run_id=dead.run_id, level=RunEvent.Level.WARNING, message=message)
    logger.warning("run %s: %s", dead.run_id, message)


def _lose_forgotten(run_id: int) -> None:
    with transaction.atomic():
        Run.objects.hold(run_id)
        count = _forgotten_calls().filter(run_id=run_id).update(status=CallStatus.LOST, error="its worker died")
        Run.objects.filter(pk=run_id).update(
            calls=F("calls") + count, cost_unknown_calls=F("cost_unknown_calls") + count
        )


def _forgotten_calls() -> QuerySet[Call]:
    return Call.objects.filter(status=CallStatus.SENT, created_at__lt=timezone.now() - FORGOTTEN)


class ReaperThread:
    """Run the reaper beside a shard: when all processes of a worker are busy, nothing else would.

    The shards of one process take turns: one of them reaps every `EVERY_SECONDS`.
    """

    _turn = threading.Lock()
    _last = 0.0

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._reap, name="reaper", daemon=True)

    def __enter__(self) -> "ReaperThread":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _reap(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            with ReaperThread._turn:
                if time.monotonic() - ReaperThread._last < EVERY_SECONDS:
                    continue
                ReaperThread._last = time.monotonic()
            try:
                reap_all()
            except Error as error:
                logger.warning("reaper: %s", error)
            finally:
                connection.close()
