"""Writers of the embedded database queue for their turn, however they end."""

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.test import Client

from curation.projects.models import Project
from tests.factories import make_bearer, make_project, make_user
from tests.sampled import one_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has its own queue"),
]
# Another program on the same file: takes its turn, says so, and keeps it until it is ended.
HOLDS = """
import json, sys, time
from django.conf import settings
settings.configure(DATABASES={"default": json.loads(sys.argv[1])})
from django.db import transaction
with transaction.atomic():
    print("held", flush=True)
    time.sleep(60)
"""


def rename(project: Project, name: str) -> float:
    """Seconds until the change was written."""
    begun = time.perf_counter()
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(name=name)
    return time.perf_counter() - begun


def in_own_connection(write: Callable[[], object]) -> None:
    write()
    connection.close()


def test_no_writer_is_passed_over_while_seven_others_write() -> None:
    project, longest, stop = make_project(), 0.0, threading.Event()

    def write_on() -> None:
        while not stop.is_set():
            rename(project, "busy")
        connection.close()

    others = [threading.Thread(target=write_on) for _ in range(7)]
    for thread in others:
        thread.start()
    longest = max(rename(project, f"turn {number}") for number in range(40))
    stop.set()
    for thread in others:
        thread.join()
    assert longest < 10


@contextmanager
def another_process_writes(*, stopped: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """Another program has taken its turn; with `stopped` it is stopped in the middle of it."""
    database = {name: connection.settings_dict[name] for name in ("ENGINE", "NAME", "OPTIONS")}
    command = [sys.executable, "-c", HOLDS, json.dumps(database, default=str)]
    holder = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        if stopped:
            holder.send_signal(signal.SIGSTOP)
        yield holder
    finally:
        holder.kill()
        holder.wait()


@pytest.fixture
def a_second(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Writers wait for a second instead of twenty."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 1)
    connection.close()
    yield
    connection.close()


@pytest.mark.parametrize("stopped", one_of(2, [False, True]))
def test_a_writer_waits_no_longer_than_the_limit_and_blocks_nobody_afterwards(a_second: None, stopped: bool) -> None:
    project = make_project()
    with another_process_writes(stopped=stopped) as holder:
        for _ in range(2):  # the second wait takes the place of the first in the queue
            begun = time.perf_counter()
            with pytest.raises(OperationalError, match="database is locked: another process has written for more than"):
                rename(project, "never")
            assert 0.9 < time.perf_counter() - begun < 10
        holder.kill()
        holder.wait()
    other = threading.Thread(target=in_own_connection, args=(lambda: rename(project, "other"),))
    other.start()
    other.join(15)  # this connection left the queue: it does not keep the turn that it gets now
    assert not other.is_alive()
    assert rename(project, "after") < 10
    project.refresh_from_db()
    assert project.name == "after"


def test_one_limit_is_for_the_queue_and_for_programs_outside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 2)
    connection.close()
    project, waited = make_project(), list[float]()

    def wait() -> None:
        begun = time.perf_counter()
        with pytest.raises(OperationalError, match="database is locked"):
            rename(project, "never")
        waited.append(time.perf_counter() - begun)
        connection.close()

    stranger = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    stranger.close()
    assert max(waited) < 3.5
    assert rename(project, "after") < 10
    connection.close()


def test_the_limit_is_the_promised_one() -> None:
    assert settings.DATABASES["default"]["OPTIONS"]["timeout"] == 20


def test_a_page_and_a_call_answer_503_with_the_time_to_try_again(a_second: None, client: Client) -> None:
    user = make_user()
    make_project("busy", user=user)
    bearer = make_bearer(user, "admin")
    client.raise_request_exception = False  # answer as the server does
    client.force_login(user)
    with another_process_writes(stopped=True):
        told = client.post("/api/v1/projects", {"slug": "x", "name": "x"}, "application/json", headers=bearer)
        page = client.post("/p/busy/settings/tokens/", {"name": "a", "scopes": "read"})
    assert (told.status_code, told.json()["code"], told["Retry-After"]) == (503, "database_busy", "10")
    assert "Another process has been writing" in told.json()["detail"] and "again in 10 s" in told.json()["detail"]
    assert (page.status_code, page["Retry-After"]) == (503, "10")
    assert "Another process has been writing" in page.content.decode()


def test_a_middleware_that_cannot_write_answers_503_too(a_second: None, client: Client) -> None:
    client.raise_request_exception = False
    with another_process_writes(stopped=True):
        page = client.post("/login/", {"username": "nobody", "password": "wrong"})
    assert (page.status_code, page["Retry-After"]) == (503, "10")


def test_a_killed_writer_leaves_the_turn_to_the_next() -> None:
    project = make_project()
    with another_process_writes() as holder:
        done = threading.Thread(target=in_own_connection, args=(lambda: rename(project, "after"),))
        done.start()
        done.join(0.5)
        assert done.is_alive(), "nobody else may write meanwhile"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        done.join(15)
    project.refresh_from_db()
    assert project.name == "after"


def test_a_write_outside_a_transaction_waits_and_a_failed_one_ends_its_turn() -> None:
    project = make_project()
    with pytest.raises(RuntimeError), transaction.atomic():
        Project.objects.filter(pk=project.pk).update(name="never")
        raise RuntimeError
    other = threading.Thread(target=in_own_connection, args=(lambda: Project.objects.update(name="alone"),))
    other.start()
    other.join(15)
    project.refresh_from_db()
    assert project.name == "alone"


def test_a_connection_that_is_closed_in_its_turn_gives_the_turn_back() -> None:
    project = make_project()
    with another_process_writes() as holder:
        threading.Timer(1.2, holder.kill).start()
        with transaction.atomic():  # a writer that waited for more than a second also limits SQLite's own wait
            Project.objects.filter(pk=project.pk).update(name="never")
            connection.close()
    other = threading.Thread(target=in_own_connection, args=(lambda: rename(project, "other"),))
    other.start()
    other.join(15)
    project.refresh_from_db()
    assert project.name == "other"


def test_a_new_connection_keeps_the_locks_of_the_others() -> None:
    """Closing any descriptor of a file drops the process's locks on it: another program could then remove the log."""
    intruder = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try:\n    print(c.execute('PRAGMA journal_mode=DELETE').fetchone())\n"
        "except sqlite3.OperationalError as error:\n    print(error)\n"
    )
    project = make_project()
    other = threading.Thread(target=in_own_connection, args=(Project.objects.count,))
    other.start()
    other.join()
    command = [sys.executable, "-c", intruder, str(connection.settings_dict["NAME"])]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "locked" in said.stdout
    assert rename(project, "still here") >= 0
