"""Shards that share a process die with it. Items that may have killed it are tried again in a process of their own."""

import os
import signal
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.utils import timezone

from curation.runs.engine import worker
from curation.runs.engine.claim import APART_AFTER, MOST_DEATHS, claim, only_suspects
from curation.runs.engine.reap import reap_all, return_items_of
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Item, ItemState, Run, RunState
from tests.factories import make_project, make_run, make_scenario


@pytest.fixture
def same_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a test starts use the test's database."""
    name = str(connection.settings_dict["NAME"])
    given = os.environ.get("DATABASE_URL", "")
    ours = f"sqlite:///{name}" if connection.vendor == "sqlite" else urlsplit(given)._replace(path=f"/{name}").geturl()
    monkeypatch.setenv("DATABASE_URL", ours)
    monkeypatch.setenv("CELERY_BROKER_URL", "")
    monkeypatch.setenv("WINNOW_DATA", str(tmp_path))


def make_waiting(count: int) -> Run:
    run = make_run(make_project(), kind="asking", stage="ask", items_total=count)
    Item.objects.bulk_create(Item(run=run, stage="ask", key=str(number)) for number in range(count))
    return run


def die(*owners: str) -> None:
    Item.objects.filter(lease_owner__in=owners).update(lease_until=timezone.now() - timedelta(seconds=1))
    reap_all()


@pytest.mark.django_db
def test_shards_of_one_process_are_suspects_when_it_died_twice() -> None:
    first, second = make_waiting(2), make_waiting(2)
    for suspects in (0, 4):
        assert (
            len(claim(run=first, owner="host:7:a", limit=2)) == len(claim(run=second, owner="host:7:b", limit=2)) == 2
        )
        die("host:7:a", "host:7:b")
        assert Item.objects.filter(state=ItemState.PENDING).count() == 4
        assert Item.objects.exclude(suspects=None).count() == suspects


@pytest.mark.django_db
def test_processes_that_stop_together_blame_nobody() -> None:
    first, second = make_waiting(2), make_waiting(2)
    for _ in range(10):
        claim(run=first, owner="host:7:a", limit=2)
        claim(run=second, owner="host:8:b", limit=2)
        die("host:7:a", "host:8:b")
    assert not Item.objects.exclude(suspects=None, deaths=0).exists()


@pytest.mark.django_db
def test_a_shared_process_claims_no_suspects() -> None:
    run = make_waiting(3)
    Item.objects.filter(run=run, key="0").update(suspects=1)
    assert [item.key for item in claim(run=run, owner="a", limit=9, alone=False)] == ["1", "2"]
    assert claim(run=run, owner="a", limit=9, alone=False) == []


@pytest.mark.django_db
def test_items_whose_workers_always_die_together_are_tried_apart() -> None:
    run = make_waiting(2)
    for _ in range(APART_AFTER):
        assert not only_suspects(run)
        claim(run=run, owner="host:7:a", limit=1, alone=False)
        claim(run=run, owner="host:8:b", limit=1, alone=False)
        die("host:7:a", "host:8:b")
    assert only_suspects(run)
    assert claim(run=run, owner="host:7:a", limit=9, alone=False) == []
    assert not Item.objects.exclude(suspects=None, deaths=0).exists()


@pytest.mark.django_db
def test_processes_that_were_seen_to_die_alone_are_judged_each_by_itself() -> None:
    run = make_waiting(2)
    for death in range(1, MOST_DEATHS + 1):
        for owner in "ab":
            assert len(claim(run=run, owner=owner, limit=1)) == 1
        for owner in "ab":  # at the same time
            return_items_of(run_id=run.pk, owner=owner)
        assert set(Item.objects.values_list("deaths", flat=True)) == {death}
    assert set(Item.objects.values_list("state", flat=True)) == {ItemState.FAILED}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("end", "blamed"),
    [
        (f"os.kill(os.getpid(), {signal.SIGKILL:d})", True),
        (f"os.kill(os.getpid(), {signal.SIGSEGV:d})", True),
        ("os._exit(1)", True),
        (f"os.kill(os.getpid(), {signal.SIGTERM:d})", False),
        ("os._exit(os.EX_TEMPFAIL)", False),
        ("os._exit(0)", False),
    ],
)
def test_a_process_is_blamed_unless_it_was_asked_to_end(
    end: str, blamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    returned: list[int] = []
    monkeypatch.setattr(worker, "return_items_of", lambda run_id, owner: returned.append(run_id))
    monkeypatch.setattr(worker, "ALONE", ("-c", f"import os; {end}"))
    run = make_waiting(1)
    Item.objects.filter(run=run).update(suspects=1)
    drive(run.pk, "a message")
    assert returned == ([run.pk] if blamed else [])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(240)
def test_a_worker_tries_suspects_in_a_process_of_their_own(
    same_database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    params = {"dry_run": True, "filter": {"name": [make_scenario(project).name]}}
    run = launch(project=project, kind="gate", params=params, user=None)
    item = Item.objects.get(run=run)
    Item.objects.filter(pk=item.pk).update(suspects=item.pk)
    monkeypatch.setattr(worker, "drive_sync", lambda *args, **values: pytest.fail("it was tried in this process"))
    run.refresh_from_db()
    assert run.dispatched_at is not None
    drive(run.pk, run.dispatched_at.isoformat())
    item.refresh_from_db()
    run.refresh_from_db()
    assert (item.state, run.state) == (ItemState.DONE, RunState.SUCCEEDED)
