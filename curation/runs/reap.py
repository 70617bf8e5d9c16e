"""The reaper: what a dead worker, a lost message or a restarted broker left behind goes on within seconds."""

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from curation.runs.advance import advance
from curation.runs.bell import ring
from curation.runs.claim import MOST_CLAIMS
from curation.runs.models import Call, CallStatus, Item, ItemState, Run, RunEvent

logger = logging.getLogger(__name__)
RING_AGAIN = timedelta(seconds=10)
BATCH = 500


def reap_all() -> None:
    """One round: lapsed leases are returned, stuck runs advanced, and runs with waiting items rung for."""
    for run_id in _return_lapsed():
        logger.warning("run %s: items of a silent worker were given back", run_id)
    now = timezone.now()
    quiet = Run.objects.live().filter(Q(rung_at=None) | Q(rung_at__lt=now - RING_AGAIN))
    waiting = Item.objects.filter(run=OuterRef("pk"), stage=OuterRef("stage"), state=ItemState.PENDING)
    claimed = Item.objects.filter(run=OuterRef("pk"), stage=OuterRef("stage"), state=ItemState.CLAIMED)
    found = list(quiet.annotate(waits=Exists(waiting), works=Exists(claimed)).values_list("pk", "waits", "works"))
    for run_id, waits, works in found:
        if waits:
            ring(run_id)
        elif not works:
            advance(run_id)


def _return_lapsed() -> set[int]:
    """Ids of the runs whose items were returned. An item that keeps killing its workers fails instead."""
    runs: set[int] = set()
    while True:
        with transaction.atomic():
            lapsed = list(
                Item.objects.select_for_update(skip_locked=True)
                .filter(state=ItemState.CLAIMED, lease_until__lt=timezone.now())
                .order_by("lease_until")[:BATCH]
            )
            if not lapsed:
                return runs
            ids = [item.pk for item in lapsed]
            _close_lost_calls(ids)
            deadly = [item for item in lapsed if item.claims >= MOST_CLAIMS]
            back = [item.pk for item in lapsed if item.claims < MOST_CLAIMS]
            Item.objects.filter(pk__in=back).update(state=ItemState.PENDING, lease_owner="", lease_until=None)
            for item in deadly:
                _fail(item)
            for run_id in {item.run_id for item in lapsed}:
                count = sum(item.run_id == run_id for item in lapsed)
                message = f"A worker fell silent; {count} of its items were given back."
                RunEvent.objects.create(run_id=run_id, level=RunEvent.Level.WARNING, message=message)
                runs.add(run_id)


def _fail(item: Item) -> None:
    reason = f"Given up: its worker fell silent {item.claims} times in a row."
    Item.objects.filter(pk=item.pk).update(
        state=ItemState.FAILED, reason=reason, lease_owner="", lease_until=None, finished_at=timezone.now()
    )
    Run.objects.filter(pk=item.run_id).update(items_failed=F("items_failed") + 1)


def _close_lost_calls(item_ids: list[int]) -> None:
    """Calls that were under way may have been paid for: they count as calls of unknown cost."""
    lost = Call.objects.filter(item_id__in=item_ids, status=CallStatus.SENT)
    for run_id in set(lost.values_list("run_id", flat=True)):
        count = lost.filter(run_id=run_id).update(status=CallStatus.LOST, error="its worker fell silent")
        Run.objects.filter(pk=run_id).update(
            calls=F("calls") + count, cost_unknown_calls=F("cost_unknown_calls") + count
        )
