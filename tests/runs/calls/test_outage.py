"""A model endpoint that is down: calls that never reached it, the pause that all workers share, items that wait."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from curation.llm.client import pace
from curation.llm.models import Endpoint, EndpointPace
from curation.projects.models import Project
from curation.runs.calls.ask import SHORT_TOKENS
from curation.runs.control import cancel, resume, retry_failed
from curation.runs.engine.waiting import wake_due
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Call, CallStatus, Item, ItemState, Run, RunEvent, RunState
from curation.runs.pages.progress import progress_of
from tests.factories import make_bearer, make_member, make_project, make_user
from tests.model_server import ModelServer
from tests.runs.asking import asked, end, make_asked, start

FREE = Decimal(0)
CONCURRENCY = 8
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_PROBE", 0.2)


@contextmanager
def stopped(server: ModelServer) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


def waiting_for(minutes: float) -> Project:
    return make_project(settings_json={"runs": {"wait_minutes": minutes}})


def reasons(run: Run) -> set[str]:
    return set(Item.objects.filter(run=run, state=ItemState.FAILED).values_list("reason", flat=True))


def states(run: Run) -> dict[str, int]:
    found: dict[str, int] = {}
    for state in Item.objects.filter(run=run, stage="ask").values_list("state", flat=True):
        found[state] = found.get(state, 0) + 1
    return found


def messages(run: Run) -> list[str]:
    return list(RunEvent.objects.filter(run=run).order_by("id").values_list("message", flat=True))


def is_down(name: str = "judge-a") -> bool:
    return EndpointPace.objects.filter(endpoint__name=name).exclude(down_since=0.0).exists()


def test_a_refused_connection_costs_nothing_and_leaves_the_budget(dead: ModelServer) -> None:
    run = start(make_asked(dead), n=20, budget=Decimal("0.01"))
    drive(run.pk)
    run.refresh_from_db()
    calls = Call.objects.filter(run=run)
    assert calls.count() == run.calls > 0
    assert set(calls.values_list("status", "error_kind", "cost")) == {("error", "unreachable", FREE)}
    assert (run.cost, run.cost_unknown_calls, run.items_failed) == (FREE, 0, 0)
    assert run.state == RunState.RUNNING
    assert states(run) == {"waiting": 20}
    assert not Item.objects.filter(run=run).exclude(lease_owner="").exists()


def test_an_answer_that_was_lost_after_it_was_sent_is_of_unknown_cost(server: ModelServer) -> None:
    server.behave(drop=1)
    run = start(make_asked(server, project=waiting_for(0)), n=1, budget=Decimal("0.01"))
    run = end(run)
    assert set(Call.objects.values_list("error_kind", "cost")) == {("transient", None)}
    assert run.cost_unknown_calls == server.counts().dropped == run.calls
    assert "the endpoint closed the connection before it answered" in run.error


def test_an_outage_in_the_middle_of_a_run_fails_nothing_and_costs_nothing(server: ModelServer) -> None:
    server.behave(latency=0.05)
    run = start(make_asked(server, max_concurrency=CONCURRENCY), n=60, budget=Decimal("0.1"))

    def weather() -> None:
        while server.counts().answered < 20:
            time.sleep(0.02)
        server.refuse(1.5)

    thread = threading.Thread(target=weather)
    thread.start()
    end(run)
    thread.join()
    assert (run.state, run.items_failed, run.result) == (RunState.SUCCEEDED, 0, {"answers": 60})
    calls = Call.objects.filter(run=run)
    assert calls.filter(error_kind="unreachable").exists()
    assert not calls.filter(error_kind="unreachable").exclude(cost=0).exists()
    short = {"params__max_tokens": SHORT_TOKENS}  # the calls that look whether it is up again
    # Only calls under way when the connections broke may have been paid for.
    assert run.cost_unknown_calls == calls.filter(cost=None).count()
    assert calls.filter(cost=None).exclude(**short).count() <= CONCURRENCY
    assert calls.filter(status=CallStatus.OK).exclude(**short).count() == 60
    down, up = (line for line in messages(run) if "judge-a" in line)
    assert down.startswith("judge-a is down: ")
    assert up.startswith("judge-a answers again, after ")
    assert not is_down()


@pytest.mark.parametrize("how", [{"error": 1.0, "status": 503}, {"error": 1.0, "status": 500}, {"hang": 1.0}])
def test_errors_and_silence_pause_the_endpoint_and_an_answer_ends_the_pause(
    server: ModelServer, how: dict[str, Any]
) -> None:
    server.behave(**how)
    run = start(make_asked(server, params={"timeout": 0.5}), n=12)
    drive(run.pk)
    assert is_down()
    assert states(run) == {"waiting": 12}
    asked_before = server.counts().asked
    drive(run.pk)
    assert server.counts().asked <= asked_before + 1, "a paused endpoint is only tried"
    server.behave()
    assert end(run).state == RunState.SUCCEEDED
    assert run.items_failed == 0
    assert not is_down()


def test_items_fail_in_words_after_the_projects_wait_and_the_run_says_so(server: ModelServer) -> None:
    project = make_asked(server, project=waiting_for(0.02))
    asked(project, n=3)
    began = time.monotonic()
    with stopped(server):
        run = asked(project, n=6)  # three are answered from the record
    assert time.monotonic() - began > 1.2
    assert (run.state, run.outcome, run.items_failed) == (RunState.SUCCEEDED, "with_failures", 3)
    why = f"judge-a is down: 127.0.0.1:{server.port} refused the connection (waited "
    assert all(reason.startswith(why) for reason in reasons(run))
    assert messages(run)[-1] == "Finished with failures: 6 done, 3 failed."
    retry_failed(run=run, user=None)
    assert end(run).outcome == ""
    assert not Item.objects.filter(run=run, waiting_since__isnull=False).exists()


def test_a_run_whose_items_all_failed_has_failed(dead: ModelServer) -> None:
    run = asked(make_asked(dead, project=waiting_for(0)), n=4)
    assert (run.state, run.outcome, run.items_failed) == (RunState.FAILED, "", 4)
    assert f"judge-a is down: 127.0.0.1:{dead.port} refused the connection" in run.error


def test_items_of_other_endpoints_go_on(server: ModelServer, dead: ModelServer) -> None:
    project = make_asked(dead)
    make_asked(server, "judge-b", project)
    run = start(project, n=40, other="judge-b")
    drive(run.pk)
    assert states(run) == {"done": 20, "waiting": 20}
    assert server.counts().answered == 20
    assert (is_down("judge-a"), is_down("judge-b")) == (True, False)
    dead.start()
    assert (end(run).state, run.items_failed) == (RunState.SUCCEEDED, 0)


def test_workers_share_the_pause_and_one_of_them_probes(dead: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_PROBE", 60.0)
    project = make_asked(dead)
    first, second = start(project, n=10), start(project, n=10, words=5)
    drive(first.pk)
    drive(second.pk)
    assert states(second) == {"waiting": 10}
    assert not Call.objects.filter(run=second).exists()
    made = Call.objects.count()
    wake_due()
    drive(first.pk)
    assert Call.objects.count() == made, "the next try is not due"
    EndpointPace.objects.update(probe_at=time.time())
    wake_due()
    assert Item.objects.filter(state=ItemState.PENDING).count() == 1
    for run in (first, second):
        drive(run.pk)
    assert Call.objects.count() == made + 1
    dead.start()
    EndpointPace.objects.update(probe_at=time.time())
    wake_due()
    for run in (first, second):
        drive(run.pk)
    assert not is_down()
    assert {end(run).state for run in (first, second)} == {RunState.SUCCEEDED}


def test_tries_come_at_growing_intervals(dead: ModelServer) -> None:
    make_asked(dead)
    endpoint = Endpoint.objects.get()
    begin = partial(pace.begin_outage, endpoint.pk, "refused")
    pauses = []
    for age in (0, 60, 600):
        begin()
        EndpointPace.objects.update(down_since=time.time() - age, probe_at=0.0)
        found = begin()
        assert found
        pauses.append(round(found.probe_at - time.time(), 1))
    assert pauses == [0.2, 6.0, 30.0]


def test_an_item_that_breaks_its_request_alone_does_not_pause_the_endpoint(server: ModelServer) -> None:
    """The others were answered, so the item is to blame, not the endpoint."""
    server.behave(breaks="Question 3:")
    run = asked(make_asked(server), n=8)
    assert (run.outcome, run.items_failed) == ("with_failures", 1)
    assert "tried 6 times" in reasons(run).pop()
    assert not any("is down" in line for line in messages(run))


def test_a_cancelled_run_keeps_its_waiting_items_for_a_resume(dead: ModelServer) -> None:
    run = start(make_asked(dead), n=5)
    drive(run.pk)
    cancel(run=run, user=None)
    wake_due()
    assert states(run) == {"waiting": 5}
    dead.start()
    resume(run=run, user=None)
    assert states(run) == {"pending": 5}
    assert end(run).state == RunState.SUCCEEDED


def test_items_do_not_wait_for_an_endpoint_that_was_deleted(dead: ModelServer) -> None:
    run = start(make_asked(dead), n=2)
    drive(run.pk)
    Endpoint.objects.all().delete()
    assert end(run).state == RunState.FAILED


def test_an_old_run_in_the_queue_waits_from_its_first_try(dead: ModelServer) -> None:
    """The endpoint may have been down for hours: each item waits as long as the project says."""
    make_asked(dead, project=(project := waiting_for(0.05)))
    run = start(project, n=1)
    pace.begin_outage(Endpoint.objects.get().pk, "refused")
    EndpointPace.objects.update(down_since=time.time() - 7200)
    drive(run.pk)
    item = Item.objects.get(run=run)
    assert item.state == ItemState.WAITING
    assert item.waiting_since
    run.refresh_from_db()
    assert progress_of(run).paused
    assert (timezone.now() - item.waiting_since).total_seconds() < 5


def test_a_corrected_address_ends_the_wait(dead: ModelServer, server: ModelServer) -> None:
    run = start(make_asked(dead), n=3)
    drive(run.pk)
    admin = Client(headers=make_bearer(make_member(run.project, make_user(), "admin")))
    path = f"/api/v1/projects/{run.project.slug}/models/judge-a"
    assert admin.patch(path, {"api_base": server.api_base}, content_type="application/json").status_code == 200
    assert not is_down()
    assert (end(run).state, run.items_failed) == (RunState.SUCCEEDED, 0)


def test_the_test_button_calls_an_endpoint_that_is_down_and_ends_the_pause(dead: ModelServer) -> None:
    run = start(make_asked(dead), n=3)
    drive(run.pk)
    trial = launch(project=run.project, kind="test", params={"model": "judge-a"}, user=None)
    assert end(trial).result["error"] == f"judge-a: 127.0.0.1:{dead.port} refused the connection"
    assert is_down()
    dead.start()
    trial = launch(project=run.project, kind="test", params={"model": "judge-a"}, user=None)
    assert end(trial).result["ok"]
    assert not is_down()


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_item_that_always_breaks_the_only_call_fails_with_its_reason(server: ModelServer, status: int) -> None:
    """The endpoint answers a short request of its own, so it is not down: nothing waits."""
    server.behave(breaks="Question", status=status)
    run = asked(make_asked(server), n=1)
    assert (run.state, run.items_failed) == (RunState.FAILED, 1)
    assert str(status) in run.error or "tried 6 times" in run.error
    assert "is down" not in " ".join(messages(run)) + reasons(run).pop()
    assert not is_down()
    # The short request is on record and paid for, as every call.
    calls = Call.objects.filter(run=run)
    assert calls.filter(status=CallStatus.ERROR).count() == 6
    assert calls.get(status=CallStatus.OK).cost
    assert run.calls == calls.count() == 7


def test_several_items_that_break_their_calls_fail_and_the_others_are_answered(server: ModelServer) -> None:
    server.behave(breaks="Question 1")
    run = asked(make_asked(server), n=20)
    assert (run.outcome, run.items_failed) == ("with_failures", 11)
    assert not any("is down" in line for line in messages(run))


def test_an_item_that_breaks_its_call_fails_after_an_outage_that_it_waited_for(server: ModelServer) -> None:
    server.behave(error=1.0, breaks="Question")
    run = start(make_asked(server), n=1)
    drive(run.pk)
    assert is_down()
    assert states(run) == {"waiting": 1}
    server.behave(breaks="Question")
    assert end(run).state == RunState.FAILED
    assert "tried 6 times" in reasons(run).pop()
    assert not is_down()


def test_the_only_item_waits_for_an_endpoint_that_fails_all_requests(server: ModelServer) -> None:
    server.behave(error=1.0)
    run = start(make_asked(server), n=1)
    drive(run.pk)
    assert states(run) == {"waiting": 1}
    server.behave()
    assert end(run).state == RunState.SUCCEEDED


def test_an_item_that_never_gets_its_answer_in_time_fails_alone(server: ModelServer) -> None:
    server.behave(stalls="Question")
    run = asked(make_asked(server, params={"timeout": 0.3}), n=1)
    assert "no answer within 0.3 s (tried 3 times)" in reasons(run).pop()
    assert not is_down()
