"""How fast rows come in, through the run engine, from JSON lines.

    WINNOW_DATA=/tmp/bench python -m benchmarks.imports [rows]

Measured in the database that the environment names (projects `bench-…` stay there): pull-request records, small turn
rows (one turn each), long turn rows (20 turns of 2,000 characters), the growth of the database by the 300 turns of one
session of 1.26 MB, and trajectories of 50 steps as ATIF, a fifth as many. Exits with 1 below 10,000 small rows a
second, below 300 trajectories a second, where these take more than 1.3 times their bytes in the database or 300 MB of
memory, or the session more than 2 times its own (asked for, trajectories, "Sizes and figures").
"""

import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection

from benchmarks.exports import MEMORY_MB, own_mb
from curation.imports.sources.stored import store_upload
from curation.projects.models import Project
from curation.runs.engine import dispatch
from curation.runs.engine.worker import drive
from curation.runs.launch import launch

TARGET = 10_000
# The growth of the database, by the size of a session whose steps are all turns.
MOST_GROWTH = 2.0
TRAJECTORIES, MOST_SPACE = 300, 1.3
STEPS = 50


def record(number: int) -> dict[str, Any]:
    patch = f"diff --git a/src/m{number}.py b/src/m{number}.py\n" + "+    return total\n" * 20
    return {"instance_id": f"acme__billing-{number}", "issue": f"Totals of {number} are wrong.", "patch": patch}


def small_turn(number: int) -> dict[str, Any]:
    messages = [("system", "You solve tasks."), ("user", f"Task {number}"), ("assistant", "THOUGHT: look.")]
    return _row(number, messages)


def long_turns(number: int) -> dict[str, Any]:
    messages = [("system", "You solve tasks."), ("user", f"Task {number}")]
    for _ in range(20):
        messages += [("assistant", "a" * 500), ("user", "o" * 1500)]
    return _row(number, messages)


def session(number: int) -> dict[str, Any]:
    messages = [("system", "You solve tasks."), ("user", f"Task {number}")]
    words = random.Random(number)
    for _ in range(300):
        text = " ".join(f"{words.getrandbits(40):x}" for _ in range(360))
        messages += [("assistant", text[:700]), ("user", text[700:])]
    return _row(number, messages)


def atif(number: int) -> dict[str, Any]:
    """A session whose agent reads and edits files: each call and each output is another text."""
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": f"Fix the totals of invoice {number}."}]
    for step in range(2, STEPS + 1):
        identifier, path = f"call_{number}_{step}", f"src/billing/part_{number % 97}_{step}.py"
        output = "".join(f"{line:>5}  total = round(total_{line} * rate_{number + line}, 2)\n" for line in range(20))
        call = {"tool_call_id": identifier, "function_name": "bash", "arguments": {"command": f"cat {path}"}}
        steps.append(
            {
                "step_id": step,
                "source": "agent",
                "message": f"I look at {path} for the rounding in step {step} of {number}.",
                "tool_calls": [call],
                "observation": {"results": [{"source_call_id": identifier, "content": output}]},
                "metrics": {"prompt_tokens": 900 + step, "completion_tokens": 40},
            }
        )
    agent = {"name": "bench", "version": "1", "model_name": "m"}
    return {"schema_version": "ATIF-v1.8", "session_id": f"s-{number}", "agent": agent, "steps": steps}


def _row(number: int, messages: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "instance_id": f"acme__billing-{number}",
        "messages": [{"role": role, "content": content} for role, content in messages],
    }


def _lines(make: Callable[[int], dict[str, Any]], rows: int) -> Iterator[bytes]:
    for number in range(rows):
        yield json.dumps(make(number)).encode() + b"\n"


def measure(kind: str, name: str, make: Callable[[int], dict[str, Any]], rows: int) -> float:
    project = Project.objects.create(slug=f"bench-{kind.replace('_', '-')}-{time.time_ns()}"[:60], name=name)
    with tempfile.TemporaryFile() as file:
        file.writelines(_lines(make, rows))
        file.seek(0)
        key = store_upload(project=project, file=File(file, name="rows.jsonl"), name="rows.jsonl")
    run = launch(project=project, kind="import", params={"kind": kind, "upload": key}, user=None)
    began = time.perf_counter()
    drive(run.pk)
    took = time.perf_counter() - began
    run.refresh_from_db()
    size = default_storage.size(key) / 1024 / 1024
    shown = {"prompts", "records", "trajectories", "bad_rows"}
    figures = {key: value for key, value in run.result.items() if key in shown}
    print(f"{name:<12}{rows / took:>9,.0f} rows/s  {rows:,} rows, {size:.0f} MB, {took:.1f} s, {run.state} {figures}")
    return rows / took


def database_bytes() -> int:
    """Return the bytes of the database. On SQLite they are those of its pages, whether checkpointed or not."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'")
        else:
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        return int(cursor.fetchone()[0])


def growth() -> float:
    """Return how much the database grows by one session, as a multiple of its bytes."""
    size, before = len(json.dumps(session(1))), database_bytes()
    measure("turns", "session", session, 1)
    grown = database_bytes() - before
    print(f"{'session':<12}{grown / 1e6:>9.2f} MB more for one of 300 steps and {size / 1e6:.2f} MB")
    return grown / size


def measure_trajectories(count: int) -> list[str]:
    """Return the targets that are not reached."""
    before, memory, ended = database_bytes(), [own_mb()], threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            memory.append(own_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    rate = measure("trajectories", "ATIF", atif, count)
    ended.set()
    watcher.join()
    more = max(memory) - memory[0]
    print(f"{'':<12}{more:>9.0f} MB of memory more than the process had")
    share = (database_bytes() - before) / sum(map(len, _lines(atif, count)))
    print(f"{'':<12}{share:>9.2f} times their bytes in the database")
    slow = [f"trajectories come in slower than {TRAJECTORIES} a second"] if rate < TRAJECTORIES else []
    large = [f"they take {more:.0f} MB of memory"] if more > MEMORY_MB else []
    return slow + large + ([f"they take more than {MOST_SPACE} times their bytes"] if share > MOST_SPACE else [])


def main(rows: int) -> None:
    call_command("migrate", verbosity=0)
    with mock.patch.object(dispatch, "send_work"):  # the bell rings for nobody: this process does the work
        slowest = min(measure("pr_records", "records", record, rows), measure("turns", "small turns", small_turn, rows))
        measure("turns", "long turns", long_turns, max(1, rows // 100))
        times = growth()
        missed = measure_trajectories(max(1, rows // 5))
    if slowest < TARGET:
        missed.append(f"small rows come in slower than {TARGET:,} a second")
    if times > MOST_GROWTH:
        missed.append(f"a session takes {times:.1f} times its size")
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
