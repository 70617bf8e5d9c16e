"""Leases: an item is ended by who holds it, and by nobody else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from curation.runs.control import retry_failed
from curation.runs.engine.claim import MOST_DEATHS, LeaseLost, claim, extend, finish, give_up, release
from curation.runs.engine.reap import reap_all
from curation.runs.models import Call, CallStatus, Item, ItemState, Run, RunEvent, RunState
from tests.factories import make_project, make_run
from tests.runs.asking import register_asking

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
    started = Run.objects.get().started_at
    assert [item.key for item in claim(run=run, owner="b", limit=2)] == ["2"]
    run.refresh_from_db()
    assert started and (run.state, run.started_at) == (RunState.RUNNING, started)


@pytest.mark.django_db(transaction=True)
def test_no_item_is_claimed_by_two_workers_at_once() -> None:
    run, together = make_waiting(40), threading.Barrier(4)

    def work(number: int) -> list[int]:
        try:
            together.wait(30)
            found: list[int] = []
            while items := claim(run=run, owner=f"worker {number}", limit=3):
                found += [item.pk for item in items]
            return found
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        claimed = sorted(pk for found in pool.map(work, range(4)) for pk in found)
    assert claimed == sorted(Item.objects.filter(run=run).values_list("pk", flat=True))


@pytest.mark.parametrize("values", [{"state": RunState.CANCELLED}, {"state": RunState.SUCCEEDED}])
def test_nothing_is_claimed_of_a_run_that_ended(values: dict[str, Any]) -> None:
    assert claim(run=make_waiting(**values), owner="a", limit=2) == []


def test_nothing_is_claimed_for_a_stage_that_is_no_longer_in_hand() -> None:
    run = make_waiting()
    Run.objects.filter(pk=run.pk).update(stage="count")
    assert claim(run=run, owner="a", limit=2) == []


def test_an_item_that_ends_has_its_result_is_counted_and_waits_for_no_call() -> None:
    run = make_waiting()
    item, other = claim(run=run, owner="a", limit=2)
    assert (item.waited, other.claims) == (0.0, 1)
    finish(item=item, owner="a", write=lambda: {"made": 1})
    call = Call.objects.create(project=run.project, run=run, item=other, endpoint_name="m", content_hash="0")
    give_up(item=other, owner="a", state=ItemState.FAILED, reason="x")
    for row in (item, run, call):
        row.refresh_from_db()
    assert (item.state, item.result, item.lease_owner, run.items_done) == (ItemState.DONE, {"made": 1}, "", 1)
    assert (run.items_failed, call.status) == (1, CallStatus.LOST)


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
        "A worker stopped responding; pending again, in two halves: 2 items."
    ]


def keys(items: list[Item]) -> str:
    return "".join(item.key for item in items)


def end_all(items: list[Item], owner: str) -> None:
    for item in items:
        finish(item=item, owner=owner, write=dict)


def test_suspects_come_last_in_halves_and_each_half_alone() -> None:
    run = make_waiting(items=6)
    assert keys(claim(run=run, owner="dead", limit=4)) == "0123"
    lapse(run)
    reap_all()
    others = claim(run=run, owner="a", limit=4)
    assert keys(others) == "45"
    assert claim(run=run, owner="a", limit=4) == []  # not beside others
    half = claim(run=run, owner="b", limit=4)
    assert keys(half) == "01"
    assert claim(run=run, owner="b", limit=4) == []  # nothing beside suspects
    end_all(others, "a")
    assert keys(claim(run=run, owner="a", limit=4)) == "23"


def test_the_item_that_kills_its_workers_is_failed_alone() -> None:
    run, died = make_waiting(items=6), 0
    while items := claim(run=run, owner="a", limit=4):
        if any(item.key == "2" for item in items):
            died += 1
            lapse(run)
            reap_all()
        else:
            end_all(items, "a")
    run.refresh_from_db()
    poison = Item.objects.get(run=run, key="2")
    assert (run.items_done, run.items_failed, poison.state) == (5, 1, ItemState.FAILED)
    assert poison.reason == "Given up: its worker died 5 times while working on it alone."
    assert died == 2 + MOST_DEATHS


def test_workers_that_stop_together_blame_nobody() -> None:
    run = make_waiting(items=2)
    for _ in range(2 * MOST_DEATHS):
        assert len(claim(run=run, owner="a", limit=1) + claim(run=run, owner="b", limit=1)) == 2
        lapse(run)
        reap_all()
    run.refresh_from_db()
    assert run.items_failed == 0
    assert not Item.objects.filter(run=run).exclude(suspects=None, deaths=0).exists()


def test_workers_that_stop_together_are_judged_together() -> None:
    run = make_waiting(items=2)
    claim(run=run, owner="a", limit=1)
    claim(run=run, owner="b", limit=1)
    now = timezone.now()
    Item.objects.filter(lease_owner="a").update(lease_until=now - timedelta(seconds=1))
    Item.objects.filter(lease_owner="b").update(lease_until=now + timedelta(seconds=1))
    reap_all()
    assert Item.objects.filter(state=ItemState.CLAIMED).count() == 2
    Item.objects.filter(lease_owner="b").update(lease_until=now - timedelta(seconds=0.5))
    reap_all()
    assert Item.objects.filter(state=ItemState.PENDING, suspects=None, deaths=0).count() == 2


def test_progress_between_two_deaths_counts_for_the_item() -> None:
    run = make_waiting(items=1)
    for _ in range(3 * MOST_DEATHS):
        item = claim(run=run, owner="a", limit=1)[0]
        Call.objects.create(project=run.project, run=run, item=item, endpoint_name="m", content_hash="0", status="ok")
        lapse(run)
        reap_all()
    assert Item.objects.get(run=run).deaths == 1


def test_retry_failed_forgets_the_deaths() -> None:
    run = make_waiting(items=1)
    for _ in range(MOST_DEATHS):
        claim(run=run, owner="a", limit=1)
        lapse(run)
        reap_all()
    Run.objects.filter(pk=run.pk).update(params={"n": 1})
    run.refresh_from_db()
    register_asking()
    retry_failed(run=run, user=None)
    assert Item.objects.filter(run=run, state=ItemState.PENDING, deaths=0).count() == 1


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
