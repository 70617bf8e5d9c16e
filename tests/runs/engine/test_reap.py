"""The bell and the reaper: faults around a run are mended, or end it with a reason, and harm no other."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError

from curation.llm.models import Endpoint
from curation.runs.control import resume
from curation.runs.engine import dispatch as sending
from curation.runs.engine.claim import claim
from curation.runs.engine.dispatch import MAX_MESSAGES, NO_BROKER, dispatch, requeue
from curation.runs.engine.reap import reap_all
from curation.runs.engine.worker import drive
from curation.runs.models import Item, ItemState, Run, RunEvent, RunState
from tests.factories import make_endpoint, make_project
from tests.runs.asking import SCRIPT, end, start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """The messages that were sent: run id and time of dispatch."""
    sent: list[tuple[int, str]] = []
    monkeypatch.setattr(sending, "send_work", lambda *args: sent.append(args[:2]))
    return sent


def make_started(**params: Any) -> Run:
    project = make_project()
    make_endpoint(project, "judge-a", model="scripted/king")
    return start(project, **params)


def dispatched_long_ago(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(dispatched_at=timezone.now() - timedelta(seconds=30))


def test_a_launch_sends_one_message_per_shard_and_at_most_sixteen(
    messages: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "ITEMS_PER_SHARD", 5)
    run = make_started(n=12)
    assert [run_id for run_id, _ in messages] == [run.pk] * 3
    messages.clear()
    make_started(n=5 * (MAX_MESSAGES + 1))
    assert len(messages) == MAX_MESSAGES


def test_a_new_dispatch_makes_older_messages_outdated(messages: list[tuple[int, str]]) -> None:
    run = make_started(n=3)
    old = messages[0][1]
    dispatch(run.pk)
    drive(run.pk, old)
    assert Item.objects.filter(run=run, state=ItemState.PENDING).count() == 3
    requeue(run.pk, old)
    assert len(messages) == 2
    drive(run.pk, messages[1][1])
    assert not Item.objects.filter(run=run, stage="ask", state=ItemState.PENDING).exists()


def test_a_lost_message_is_sent_again(messages: list[tuple[int, str]]) -> None:
    run = make_started(n=3)
    messages.clear()
    reap_all()
    assert messages == []  # it was dispatched a moment ago
    dispatched_long_ago(run)
    reap_all()
    assert [run_id for run_id, _ in messages] == [run.pk]


def test_a_run_that_is_worked_on_is_left_in_peace(messages: list[tuple[int, str]]) -> None:
    run = make_started(n=3)
    claim(run=run, owner="a", limit=1)
    messages.clear()
    dispatched_long_ago(run)
    reap_all()
    assert messages == []


def test_a_run_whose_worker_died_between_its_last_item_and_the_next_stage_goes_on() -> None:
    run = make_started(n=2)
    Item.objects.filter(run=run).update(state=ItemState.DONE)
    dispatched_long_ago(run)
    reap_all()
    run.refresh_from_db()
    assert run.stage == "count"


def test_without_a_broker_the_launch_holds_and_the_run_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(sending, "send_work", refuse)
    run = make_started(n=2)
    dispatched_long_ago(run)
    reap_all()
    assert run.state == RunState.QUEUED
    events = list(RunEvent.objects.filter(run=run).values_list("message", flat=True))
    assert events.count(NO_BROKER) == 1  # said once, not at every round
    sent: list[object] = []
    monkeypatch.setattr(sending, "send_work", lambda *args: sent.append(args[:2]))
    dispatched_long_ago(run)
    reap_all()
    assert len(sent) == 1


def test_a_stage_that_cannot_be_planned_ends_its_run_and_no_other() -> None:
    broken, sound = make_started(n=1), make_started(n=1)
    for run in (broken, sound):
        Item.objects.filter(run=run).update(state=ItemState.DONE)
        dispatched_long_ago(run)
    original = SCRIPT.plan_error
    SCRIPT.plan_error = ZeroDivisionError("a bug")
    Run.objects.filter(pk=sound.pk).update(stage="count")
    reap_all()
    SCRIPT.plan_error = original
    broken.refresh_from_db()
    sound.refresh_from_db()
    assert (broken.state, broken.error) == (RunState.FAILED, "Internal error: ZeroDivisionError('a bug')")
    assert sound.state == RunState.SUCCEEDED
    resume(run=broken, user=None)
    assert end(broken).state == RunState.SUCCEEDED


def test_a_run_of_a_kind_that_is_gone_keeps_no_other_waiting(messages: list[tuple[int, str]]) -> None:
    gone, sound = make_started(n=1), make_started(n=1)
    Run.objects.filter(pk=gone.pk).update(kind="forgotten")
    dispatched_long_ago(gone)
    dispatched_long_ago(sound)
    messages.clear()
    reap_all()
    gone.refresh_from_db()
    assert gone.state == RunState.FAILED and "no run kind" in gone.error
    assert [run_id for run_id, _ in messages] == [sound.pk]


def test_a_bug_in_loading_ends_the_run_and_gives_its_items_back() -> None:
    run = make_started(n=2)
    SCRIPT.load_error = KeyError("text")
    drive(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error) == (RunState.FAILED, "Internal error: KeyError('text')")
    assert Item.objects.filter(run=run, state=ItemState.PENDING, claims=0).count() == 2


def test_a_bug_in_the_work_ends_the_item_with_its_name() -> None:
    run = make_started(n=2)
    SCRIPT.work_error = KeyError("text")
    assert end(run).state == RunState.FAILED
    assert set(Item.objects.filter(run=run).values_list("reason", flat=True)) == {"Internal error: KeyError('text')"}


def test_a_model_that_was_deleted_meanwhile_ends_the_run_with_its_name() -> None:
    run = make_started(n=2)
    Endpoint.objects.filter(project=run.project).delete()
    assert "There is no model 'judge-a'" in end(run).error
    make_endpoint(run.project, "judge-a", model="scripted/king")
    resume(run=run, user=None)
    assert end(run).state == RunState.SUCCEEDED
