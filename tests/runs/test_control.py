"""Cancel, resume, retry failed, clone, budgets: a person's actions on a run, and the rows they leave behind."""

import threading
from decimal import Decimal

import pytest
from django.db import connection

from curation.projects.models import AuditEntry
from curation.runs.control import cancel, clone, resume, retry_failed
from curation.runs.engine.worker import drive
from curation.runs.kinds import stages_of
from curation.runs.launch import launch
from curation.runs.models import Call, CallStatus, Item, ItemState, Run, RunEvent, RunState
from curation.web.problems import Conflict, Invalid
from tests.factories import make_project, make_run
from tests.model_server import ModelServer
from tests.runs.asking import SCRIPT, asked, end, make_asked, start
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def in_the_background(run: Run) -> threading.Thread:
    """A worker in a thread of its own, which first calls have reached the server from when this returns."""

    def work() -> None:
        try:
            drive(run.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_cancel_ends_hanging_calls_within_seconds_and_gives_the_items_back(server: ModelServer) -> None:
    server.behave(hang=1)
    run = start(make_asked(server, params={"timeout": 600}), n=5)
    worker = in_the_background(run)
    until(lambda: server.counts().hung == 5)
    cancel(run=run, user=None)
    worker.join(timeout=60)
    assert not worker.is_alive()
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert Item.objects.filter(run=run, state=ItemState.PENDING, claims=0, lease_owner="").count() == 5
    # They may have been paid for, so they count as calls whose cost nobody knows.
    assert Call.objects.filter(status=CallStatus.LOST, cost=None).count() == 5
    assert (run.calls, run.cost_unknown_calls) == (5, 5)


def test_resume_goes_on_where_a_cancelled_run_stopped(server: ModelServer) -> None:
    server.behave(latency=0.2)
    run = start(make_asked(server, max_concurrency=2), n=30)
    worker = in_the_background(run)
    until(lambda: Item.objects.filter(run=run, state=ItemState.DONE).count() >= 2)
    cancel(run=run, user=None)
    worker.join()
    answered = Call.objects.filter(status=CallStatus.OK).count()
    assert 2 <= answered < 30
    server.behave()
    resume(run=run, user=None)
    end(run)
    assert (run.state, run.items_done, run.result["answers"]) == (RunState.SUCCEEDED, 60, 30)
    assert Call.objects.filter(status=CallStatus.OK).count() == 30


def test_a_run_that_succeeded_is_neither_cancelled_nor_resumed_nor_retried(server: ModelServer) -> None:
    run = asked(make_asked(server), n=1)
    for verb, reason in ((cancel, "succeeded"), (resume, "succeeded"), (retry_failed, "no failed items")):
        with pytest.raises(Conflict, match=reason):
            verb(run=run, user=None)


def test_retry_failed_plans_later_stages_anew_and_keeps_every_call(server: ModelServer) -> None:
    server.behave(error=0.5, status=400)
    run = asked(make_asked(server), n=8)
    failed = run.items_failed
    assert 0 < failed < 8
    assert (run.state, run.result["answers"], run.items_total) == (RunState.SUCCEEDED, 8 - failed, 16 - failed)
    server.behave()
    retry_failed(run=run, user=None)
    assert (run.state, run.stage, run.items_failed, run.items_total) == (RunState.RUNNING, "ask", 0, 8)
    end(run)
    assert (run.result["answers"], run.items_total, run.items_done, run.items_failed) == (8, 16, 16, 0)
    assert (Call.objects.count(), server.counts().asked, run.calls) == (8 + failed,) * 3


def test_calls_of_a_stage_that_is_planned_anew_stay_on_record(server: ModelServer) -> None:
    """The stage `count` asks nobody here, so its part is played by calls hung onto its items."""
    server.behave(error=0.5, status=400)
    run = asked(make_asked(server), n=6)
    late = Item.objects.filter(run=run, stage="count").first()
    Call.objects.create(project=run.project, run=run, item=late, endpoint_name="x", content_hash="0", cost=Decimal(3))
    retry_failed(run=run, user=None)
    kept = Call.objects.get(content_hash="0")
    assert (kept.item_id, kept.cost) == (None, Decimal(3))


def test_a_second_click_on_retry_changes_nothing(server: ModelServer) -> None:
    server.behave(error=1, status=400)
    run = asked(make_asked(server), n=3)
    retry_failed(run=run, user=None)
    with pytest.raises(Conflict):
        retry_failed(run=Run.objects.get(pk=run.pk), user=None)
    run.refresh_from_db()
    assert (run.items_failed, run.items_total) == (0, 3)


def test_a_clone_has_the_same_parameters_and_names_its_origin(server: ModelServer) -> None:
    run = start(make_asked(server), n=2, budget=Decimal(1))
    copy = clone(run=run, user=None)
    assert (copy.params, copy.budget, copy.cloned_from_id, copy.pk != run.pk) == (run.params, Decimal(1), run.pk, True)


def test_a_run_cancelled_before_it_began_is_resumed_and_both_are_in_the_logs(server: ModelServer) -> None:
    run = start(make_asked(server), n=1)
    cancel(run=run, user=None)
    resume(run=run, user=None)
    actions = list(AuditEntry.objects.filter(project=run.project).order_by("id").values_list("action", flat=True))
    assert actions == ["run.launch", "run.cancel", "run.resume"]
    assert list(RunEvent.objects.filter(run=run).order_by("id").values_list("message", flat=True))[1:] == [
        "Cancelled.",
        "Resumed.",
    ]
    assert end(run).started_at is not None


def test_a_budget_stops_the_run_before_it_is_overrun_and_a_higher_one_lets_it_go_on(server: ModelServer) -> None:
    server.behave(text="four word long answer")
    project = make_asked(server, price_in=1000, price_out=1000, max_concurrency=4)
    # A call costs about a cent (tokens in and out at $1,000 a million) and reserves 5: 50 tokens out may come.
    run = end(start(project, n=40, budget=Decimal("0.2")))
    assert run.state == RunState.CANCELLED
    assert "budget of $0.2" in run.error and "does not pay for one more call" in run.error
    assert Decimal("0.1") < run.cost <= Decimal("0.2")
    assert Item.objects.filter(run=run, state=ItemState.PENDING).exists()
    assert not Item.objects.filter(run=run, state__in=[ItemState.FAILED, ItemState.CLAIMED]).exists()
    with pytest.raises(Conflict, match="has already spent"):
        resume(run=run, user=None, budget=run.cost)
    resume(run=run, user=None, budget=Decimal(5))
    assert (end(run).state, run.items_failed, server.counts().answered) == (RunState.SUCCEEDED, 0, 40)


def test_calls_of_unknown_cost_count_against_the_budget_as_the_most_they_could_cost(server: ModelServer) -> None:
    server.behave(drop=1)
    project = make_asked(server, price_in=1000, price_out=1000)
    run = end(start(project, n=1, budget=Decimal("0.2")))
    assert (run.state, run.cost) == (RunState.CANCELLED, Decimal(0))
    assert server.counts().asked == 2  # each may have cost 8 cents; a third could not be paid for


def test_cached_answers_need_no_budget(server: ModelServer) -> None:
    project = make_asked(server, price_in=1000, price_out=1000)
    asked(project, n=3)
    run = end(start(project, n=3, budget=Decimal("0.000001")))
    assert (run.state, run.cost) == (RunState.SUCCEEDED, Decimal(0))


def test_a_budget_is_refused_where_a_price_is_unknown(server: ModelServer) -> None:
    SCRIPT.unpriced = ("judge-a",)
    with pytest.raises(Invalid, match="price of judge-a is unknown") as refused:
        start(make_asked(server), n=1, budget=Decimal(1))
    assert refused.value.errors[0].path == "budget"
    assert not Run.objects.exists()


@pytest.mark.parametrize("budget", ["0", "-1", "NaN", "Infinity", "0.0000001", "99999999999"])
def test_a_budget_is_an_amount(server: ModelServer, budget: str) -> None:
    with pytest.raises(Invalid):
        start(make_asked(server), n=1, budget=Decimal(budget))


def test_a_launch_that_is_refused_leaves_nothing(server: ModelServer) -> None:
    with pytest.raises(Invalid) as refused:
        launch(project=make_asked(server), kind="asking", params={"n": "many", "m": 1}, user=None)
    assert {error.path for error in refused.value.errors} == {"params.n", "params.m"}
    assert (Run.objects.count(), Item.objects.count(), AuditEntry.objects.count()) == (0, 0, 0)


@pytest.mark.parametrize(
    ("state", "says"),
    [(RunState.SUCCEEDED, "A run that succeeded cannot be resumed."), (RunState.RUNNING, "A run that is running")],
)
def test_what_a_run_cannot_do_is_said_with_its_state(state: RunState, says: str) -> None:
    run = make_run(make_project(), "test", params={"model": "large"}, state=state)
    with pytest.raises(Conflict, match=says):
        resume(run=run, user=None)


def test_one_failed_item_is_tried_again_in_the_singular() -> None:
    run = make_run(
        make_project(), "test", params={"model": "large"}, state=RunState.FAILED, items_total=1, items_failed=1
    )
    stage = stages_of(run)[0].name
    Item.objects.create(run=run, stage=stage, key="a", state=ItemState.FAILED)
    retry_failed(run=run, user=None)
    assert RunEvent.objects.filter(run=run, message="Trying 1 failed item again.").exists()
