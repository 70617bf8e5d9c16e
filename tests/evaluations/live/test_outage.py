"""A server of live episodes that is down: the episodes wait without a worker, and go on when it answers."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from curation.evaluations.live import stage
from curation.evaluations.live.record import PlayedEpisode
from curation.evaluations.models import Episode
from curation.projects.models import Project
from curation.runs.engine.waiting import wake_due
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Call, Item, Run, RunEvent, ServerOutage
from sandbox.errors import NoReply, SandboxFailed
from tests.driving import end
from tests.evaluations.evaluating import at_server
from tests.factories import make_member, make_project
from tests.model_server import ModelServer
from tests.sandbox.shop import start_shop
from tests.serving import free_port

pytestmark = pytest.mark.django_db(transaction=True)


def shop(minutes: float) -> Project:
    return make_project(settings_json={"evaluation": {"families": {"shop": "shop"}}, "runs": {"wait_minutes": minutes}})


def started(project: Project, address: str, **params: Any) -> Run:
    given = {"kind": "live", "models": ["good"], "family": "shop", "environment": address, "episodes": 3, "seed": 1}
    return launch(project=project, kind="evaluate", params={**given, **params}, user=None)


def states(run: Run) -> list[str]:
    return list(Item.objects.filter(run=run).order_by("pk").values_list("state", flat=True))


def test_episodes_wait_for_a_server_that_is_down_and_go_on(server: ModelServer, client: Client) -> None:
    project, port = shop(60), free_port()
    at_server(project, server, "good")
    server.behave("good", text="shop add")
    run = started(project, f"ws://127.0.0.1:{port}")
    drive(run.pk)
    assert states(run) == ["waiting"] * 3 and not Call.objects.exists()
    outage = ServerOutage.objects.get()
    assert outage.server == f"ws://127.0.0.1:{port}"
    client.force_login(make_member(project))
    (wait,) = client.get(f"/api/v1/runs/{run.pk}").json()["waiting"]
    assert (wait["reason"], wait["host"], wait["items"]) == ("server_down", f"127.0.0.1:{port}", 3)
    assert f"127.0.0.1:{port} is down" in client.get(f"/p/{project.slug}/runs/{run.pk}/").content.decode()

    ServerOutage.objects.update(probe_at=timezone.now() + timedelta(minutes=1))
    wake_due()
    assert states(run) == ["waiting"] * 3, "not yet due"
    ServerOutage.objects.update(probe_at=timezone.now())
    wake_due()
    assert sorted(states(run)) == ["pending", "waiting", "waiting"], "one item tries it"
    drive(run.pk)
    assert states(run) == ["waiting"] * 3 and ServerOutage.objects.get().since == outage.since

    process = start_shop(port)
    try:
        ServerOutage.objects.update(probe_at=timezone.now())
        wake_due()
        end(run)
    finally:
        process.kill()
        process.join()
    assert states(run) == ["done"] * 3 and Episode.objects.filter(completed=True).count() == 3
    assert not ServerOutage.objects.exists()
    said = list(RunEvent.objects.filter(run=run).values_list("message", flat=True))
    assert any("wait until it answers again" in text for text in said)
    assert any("answers again, after" in text for text in said)


def test_episodes_that_have_waited_long_enough_fail(server: ModelServer) -> None:
    project = shop(1)
    at_server(project, server, "good")
    address = f"ws://127.0.0.1:{free_port()}"
    run = started(project, address)
    drive(run.pk)
    Item.objects.filter(run=run).update(waiting_since=timezone.now() - timedelta(minutes=2))
    wake_due()
    end(run)
    assert states(run) == ["failed"] * 3
    assert address in Item.objects.filter(run=run)[0].reason


def test_without_waiting_an_unreachable_server_fails_the_run_with_its_address(server: ModelServer) -> None:
    project = shop(0)
    at_server(project, server, "good")
    address = f"ws://127.0.0.1:{free_port()}"
    run = end(started(project, address))
    assert run.state == "failed" and address in run.error
    assert not Episode.objects.exists() and not ServerOutage.objects.exists()


def test_a_server_that_hangs_is_given_less_time_than_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each timeout has taken its time twice already."""

    async def is_up(*_: object) -> bool:
        return True

    monkeypatch.setattr(stage, "answers", is_up)
    monkeypatch.setattr(stage, "FIRST_PAUSE", 0.01)
    for error, most in ((NoReply("slow"), 2), (SandboxFailed("broken"), 3)):
        tried: list[int] = []

        async def play(error: Exception = error, tried: list[int] = tried) -> PlayedEpisode:
            tried.append(1)
            raise error

        with pytest.raises(SandboxFailed):
            asyncio.run(stage._retry_if_broken(play, "ws://127.0.0.1:1"))
        assert len(tried) == most
