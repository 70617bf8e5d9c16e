"""Writers of the embedded database queue for their turn, however they end."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection, transaction

from curation.projects.models import Project
from tests.factories import make_project

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has its own queue"),
]
# Another program on the same file: takes its turn, says so, and keeps it until it is ended.
HOLDS = """
import os, sys, time
os.environ["DATABASE_URL"] = "sqlite:///" + sys.argv[1]
import django; django.setup()
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
    assert longest < 1.0


def test_a_killed_writer_leaves_the_turn_to_the_next() -> None:
    project = make_project()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(connection.settings_dict["NAME"])],
        cwd=Path(__file__).parents[2],
        env={
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "WINNOW_DATA": str(Path(connection.settings_dict["NAME"]).parent),
        },
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    done = threading.Thread(target=in_own_connection, args=(lambda: rename(project, "after"),))
    done.start()
    done.join(0.5)
    assert done.is_alive(), "nobody else may write meanwhile"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    done.join(5)
    project.refresh_from_db()
    assert project.name == "after"


def test_a_write_outside_a_transaction_waits_and_a_failed_one_ends_its_turn() -> None:
    project = make_project()
    with pytest.raises(RuntimeError), transaction.atomic():
        Project.objects.filter(pk=project.pk).update(name="never")
        raise RuntimeError
    other = threading.Thread(target=in_own_connection, args=(lambda: Project.objects.update(name="alone"),))
    other.start()
    other.join(5)
    project.refresh_from_db()
    assert project.name == "alone"


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
