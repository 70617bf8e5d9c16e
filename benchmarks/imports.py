"""How fast rows come in, through the run engine, from JSON lines.

    WINNOW_DATA=/tmp/bench python -m benchmarks.imports [rows]

Three measurements in the database that the environment names (projects `bench-…` stay there): pull-request records,
small turn rows (one turn each), and long turn rows (20 turns of 2,000 characters). Exits with 1 below 10,000 small
rows a second.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management import call_command

from curation.imports.sources.stored import store_upload
from curation.projects.models import Project
from curation.runs.engine import dispatch
from curation.runs.engine.worker import drive
from curation.runs.launch import launch

TARGET = 10_000


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
    figures = {key: value for key, value in run.result.items() if key in {"prompts", "records", "bad_rows"}}
    print(f"{name:<12}{rows / took:>9,.0f} rows/s  {rows:,} rows, {size:.0f} MB, {took:.1f} s, {run.state} {figures}")
    return rows / took


def main(rows: int) -> None:
    call_command("migrate", verbosity=0)
    with mock.patch.object(dispatch, "send_work"):  # the bell rings for nobody: this process does the work
        slowest = min(measure("pr_records", "records", record, rows), measure("turns", "small turns", small_turn, rows))
        measure("turns", "long turns", long_turns, max(1, rows // 100))
    if slowest < TARGET:
        sys.exit(f"small rows come in slower than {TARGET:,} a second")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
