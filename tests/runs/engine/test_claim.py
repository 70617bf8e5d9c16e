"""Leases: an item is ended by who holds it, and by nobody else."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from curation.runs.engine.claim import MOST_CLAIMS, LeaseLost, claim, extend, finish, give_up, release
from curation.runs.engine.reap import reap_all
from curation.runs.models import Call, CallStatus, Item, ItemState, Run, RunEvent, RunState
from tests.factories import make_project, make_run

pytestmark = pytest.mark.django_db


def make_waiting(items: int = 3, **values: Any) -> Run:
    run = make_run(make_project(), kind="asking", stage="ask", items_total=items, **values)
    Item.objects.bulk_create(Item(run=run, stage="ask", key=str(number)) for number in range(items))
    return run


def lapse(run: Run) -> None:
    Item.objects.filter(run=run, state=ItemState.CLAIMED).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_claims_take_the_oldest_items_and_start_the_run() -> None:
    run = make_waiting()
    assert [item.key for item in claim(run=run, owner="a", limit=2)] == ["0", "1"]
    assert [item.key for item in claim(run=run, owner="b", limit=2)] == ["2"]
    run.refresh_from_db()
    assert (run.state, run.started_at is not None) == (RunState.RUNNING, True)


@pytest.mark.parametrize("values", [{"state": RunState.CANCELLED}, {"state": RunState.SUCCEEDED}])
def test_nothing_is_claimed_of_a_run_that_ended(values: dict[str, Any]) -> None:
    assert claim(run=make_waiting(**values), owner="a", limit=2) == []


def test_nothing_is_claimed_for_a_stage_that_is_no_longer_in_hand() -> None:
    run = make_waiting()
    Run.objects.filter(pk=run.pk).update(stage="count")
    assert claim(run=run, owner="a", limit=2) == []


def test_finish_writes_the_result_and_counts_the_item() -> None:
    run = make_waiting()
    item = claim(run=run, owner="a", limit=1)[0]
    finish(item=item, owner="a", write=lambda: {"made": 1})
    item.refresh_from_db()
    run.refresh_from_db()
    assert (item.state, item.result, item.lease_owner, run.items_done) == (ItemState.DONE, {"made": 1}, "", 1)


def test_a_lost_lease_writes_nothing() -> None:
    run = make_waiting()
    item = claim(run=run, owner="slow", limit=1)[0]
    lapse(run)
    reap_all()
    claim(run=run, owner="quick", limit=1)

    def write() -> dict[str, object]:
        RunEvent.objects.create(run=run, message="written by the slow one")
        return {"by": "slow"}

    with pytest.raises(LeaseLost):
        finish(item=item, owner="slow", write=write)
    with pytest.raises(LeaseLost):
        give_up(item=item, owner="slow", state=ItemState.FAILED, reason="x", write=write)
    item.refresh_from_db()
    run.refresh_from_db()
    assert (item.state, item.lease_owner, item.result) == (ItemState.CLAIMED, "quick", {})
    assert (run.items_done, run.items_failed) == (0, 0)
    assert not RunEvent.objects.filter(message__startswith="written").exists()


def test_a_heartbeat_keeps_the_reaper_away() -> None:
    run = make_waiting(items=1)
    claim(run=run, owner="a", limit=1)
    lapse(run)
    assert extend(owner="a") == 1
    reap_all()
    assert Item.objects.get(run=run).lease_owner == "a"


def test_release_gives_back_untried_and_closes_calls_that_nobody_waits_for() -> None:
    run = make_waiting(items=1)
    item = claim(run=run, owner="a", limit=1)[0]
    call = Call.objects.create(project=run.project, run=run, item=item, endpoint_name="m", content_hash="0")
    assert release(run_id=run.pk, owner="a") == 1
    item.refresh_from_db()
    call.refresh_from_db()
    run.refresh_from_db()
    assert (item.state, item.claims, item.lease_until) == (ItemState.PENDING, 0, None)
    assert (call.status, run.calls, run.cost_unknown_calls) == (CallStatus.LOST, 1, 1)


def test_the_reaper_returns_the_items_of_a_worker_that_stopped_responding() -> None:
    run = make_waiting()
    item = claim(run=run, owner="a", limit=2)[0]
    Call.objects.create(project=run.project, run=run, item=item, endpoint_name="m", content_hash="0")
    lapse(run)
    reap_all()
    reap_all()
    run.refresh_from_db()
    assert Item.objects.filter(run=run, state=ItemState.PENDING, claims=1).count() == 2
    assert (Call.objects.get().status, run.calls, run.cost_unknown_calls) == (CallStatus.LOST, 1, 1)
    assert [event.message for event in run.events.all()] == [
        "A worker stopped responding; 2 of its items are pending again."
    ]


def test_an_item_that_takes_its_workers_down_fails_after_six_of_them() -> None:
    run = make_waiting(items=2)
    for _ in range(MOST_CLAIMS):
        claim(run=run, owner="a", limit=1)
        lapse(run)
        reap_all()
    poison = Item.objects.get(run=run, key="0")
    run.refresh_from_db()
    assert (poison.state, run.items_failed) == (ItemState.FAILED, 1)
    assert poison.reason == "Given up: its worker stopped responding 6 times in a row."
    assert claim(run=run, owner="b", limit=2)[0].key == "1"


def test_a_call_that_everybody_forgot_is_lost_after_hours() -> None:
    run = make_waiting(items=1)
    call = Call.objects.create(project=run.project, run=run, endpoint_name="m", content_hash="0")
    reap_all()
    assert Call.objects.get().status == CallStatus.SENT
    Call.objects.filter(pk=call.pk).update(created_at=timezone.now() - timedelta(hours=3))
    reap_all()
    run.refresh_from_db()
    assert (Call.objects.get().status, run.calls, run.cost_unknown_calls) == (CallStatus.LOST, 1, 1)


def test_no_more_of_a_run_is_in_hand_than_its_kind_allows() -> None:
    run = make_waiting(items=5)
    assert len(claim(run=run, owner="a", limit=2, most=3)) == 2
    assert len(claim(run=run, owner="b", limit=2, most=3)) == 1
    assert claim(run=run, owner="b", limit=2, most=3) == []
    assert len(claim(run=run, owner="b", limit=5)) == 2
