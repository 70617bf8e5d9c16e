"""Reasons why a run waits, in REST, on its page and in a terminal; runs that succeeded with failures."""

import io
import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from curation.dashboard.system.api import ProductCollector
from curation.llm.models import EndpointPace
from curation.runs.engine.dispatch import NO_BROKER
from curation.runs.engine.worker import drive
from curation.runs.models import Call, Item, ItemState, Run, RunEvent, WorkerSeen
from curation.webhooks.models import Delivery, Webhook
from tests.factories import make_bearer, make_endpoint, make_member, make_project, make_prompt, make_run, make_user
from tests.model_server import ModelServer
from tests.runs.asking import asked, end, make_asked, start

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = timedelta(minutes=5)


def look(run: Run) -> tuple[dict[str, Any], str]:
    """The run in REST, and the live part of its page."""
    user = make_member(run.project, make_user(), "admin")
    found: dict[str, Any] = Client(headers=make_bearer(user)).get(f"/api/v1/runs/{run.pk}").json()
    client = Client()
    client.force_login(user)
    return found, client.get(f"/p/{run.project.slug}/runs/{run.pk}/live/").content.decode()


def still(run: Run) -> Run:
    """The run as if it had not moved for minutes."""
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - LONG_AGO)
    RunEvent.objects.filter(run=run).update(created_at=timezone.now() - LONG_AGO)
    run.refresh_from_db()
    return run


def waits(run: Run) -> list[str]:
    return [wait["reason"] for wait in look(run)[0]["waiting"]]


def seen(queue: str, slots: int = 2) -> None:
    WorkerSeen.objects.create(
        name=f"w@{queue}", queues=queue, slots=slots, started_at=timezone.now(), seen_at=timezone.now()
    )


def test_a_run_against_a_dead_endpoint_says_so_with_the_first_refusal(dead: ModelServer) -> None:
    run = start(make_asked(dead), n=4)
    drive(run.pk)
    found, page = look(run)
    (wait,) = found["waiting"]
    place = f"127.0.0.1:{dead.port}"
    assert (wait["reason"], wait["endpoint"], wait["host"], wait["items"]) == ("endpoint_down", "judge-a", place, 4)
    assert wait["message"] == (
        f"judge-a is down: {place} refused the connection. 4 items wait for it, for at most 30 min."
    )
    assert wait["since"] < wait["next_try_at"] < wait["gives_up_at"]
    for text in (page, found, list(Call.objects.values_list("error", flat=True))):
        assert " object at 0x" not in str(text)
        assert "SSLContext" not in str(text)
    assert "judge-a is down, its items wait" in page
    assert f"{place} refused the connection" in page
    dead.start()
    EndpointPace.objects.update(probe_at=0.0)
    assert look(end(run))[0]["waiting"] == []


def test_a_run_that_moves_waits_for_nothing(server: ModelServer) -> None:
    run = start(make_asked(server), n=2)
    assert waits(run) == []
    assert waits(end(run)) == []


def test_without_a_worker_the_queue_is_named(server: ModelServer) -> None:
    run = still(start(make_asked(server), n=2))
    found, page = look(run)
    assert [wait["reason"] for wait in found["waiting"]] == ["no_worker"]
    assert "No worker of the queue llm is running" in page
    seen("llm,default")
    assert waits(run) == ["workers_busy"]
    RunEvent.objects.create(run=run, message=NO_BROKER)
    assert waits(still(run)) == ["no_broker"]


def test_a_rollout_that_waits_for_a_slot_says_so() -> None:
    project = make_project()
    run = still(make_run(project, "rollout", stage="rollout", params={"model": "operator"}, settings_json={}))
    Item.objects.create(run=run, stage="rollout", key="1:0")
    seen("rollout,sandbox", slots=3)
    found, page = look(run)
    assert [wait["reason"] for wait in found["waiting"]] == ["sandbox_slots"]
    assert "All 3 sandbox slots are in use" in page


def test_calls_without_an_answer_and_limits_are_named(server: ModelServer) -> None:
    run = still(start(make_asked(server, rpm=6), n=1))
    endpoint = run.project.endpoints.get()
    now = timezone.now()
    Item.objects.filter(run=run).update(state=ItemState.CLAIMED, lease_owner="w", lease_until=now + LONG_AGO)
    Run.objects.filter(pk=run.pk).update(state="running")
    call = Call.objects.create(
        project=run.project,
        run=run,
        item=Item.objects.get(run=run),
        endpoint=endpoint,
        endpoint_name="judge-a",
        content_hash="0" * 64,
    )
    assert waits(run) == []
    Call.objects.filter(pk=call.pk).update(created_at=now - timedelta(seconds=45))
    found, page = look(run)
    assert [(wait["reason"], wait["endpoint"]) for wait in found["waiting"]] == [("no_answer", "judge-a")]
    assert "1 call has no answer from judge-a, the first for " in page
    Call.objects.filter(pk=call.pk).update(status="ok")
    EndpointPace.objects.create(endpoint=endpoint, requests_free_at=time.time() + 9)
    found, page = look(run)
    assert [wait["reason"] for wait in found["waiting"]] == ["rate_limit"]
    assert found["waiting"][0]["next_try_at"] > now.isoformat()
    assert "its limits per minute are used up" in page


def test_with_failures_is_said_in_words_in_rest_in_lists_and_in_the_webhook(server: ModelServer) -> None:
    server.behave(breaks="Question 1:", status=400)
    project = make_asked(server)
    hook = Webhook.objects.create(project=project, url="https://example.com/hook", events=["run.finished"])
    run = asked(project, n=3)
    found, page = look(run)
    assert (found["state"], found["outcome"], found["items"]["failed"]) == ("succeeded", "with_failures", 1)
    assert "Succeeded with failures" in page
    assert "badge--borderline" in page
    data = Delivery.objects.get(webhook=hook).body["data"]
    assert (data["state"], data["outcome"], data["items"]["failed"]) == ("succeeded", "with_failures", 1)
    sample = {metric.name: metric.samples[0].value for metric in ProductCollector().collect() if metric.samples}
    assert sample["winnow_runs_with_failures"] == 1


def test_lists_are_filtered_by_the_outcome(client: Client) -> None:
    project = make_project()
    whole, partly, failed = (
        make_run(project, "king", state=state, items_failed=number)
        for state, number in (("succeeded", 0), ("succeeded", 2), ("failed", 3))
    )
    user = make_member(project, make_user(), "admin")
    script = Client(headers=make_bearer(user))
    runs = f"/api/v1/projects/{project.slug}/runs"
    assert [run["id"] for run in script.get(runs, {"outcome": "with_failures"}).json()["data"]] == [str(partly.pk)]
    assert [run["outcome"] for run in script.get(runs).json()["data"]] == [None, "with_failures", None]
    assert script.get(runs, {"outcome": "other"}).status_code == 400
    client.force_login(user)
    page = client.get(f"/p/{project.slug}/runs/?outcome=with_failures").content.decode()
    assert f"/runs/{partly.pk}/" in page
    assert f"/runs/{whole.pk}/" not in page
    assert f"/runs/{failed.pk}/" not in page
    assert "Succeeded with failures" in page


def test_the_command_line_says_what_a_run_waits_for_and_how_it_ended(dead: ModelServer) -> None:
    project = make_project("acme", settings_json={"runs": {"wait_minutes": 0.02}})
    make_endpoint(project, "king", model="openai/king", api_base=dead.api_base)
    make_prompt(project)
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit):
        call_command("run", "king", project="acme", param=["model=king"], inline=True, stdout=out, stderr=err)
    assert json.loads(out.getvalue())["state"] == "failed"
    assert f"king is down: 127.0.0.1:{dead.port} refused the connection" in err.getvalue()
