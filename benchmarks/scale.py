"""Trials that arrive from a provider: how fast one worker saves them, their processor time, and the queue behind.

    DATABASE_URL=postgresql://… python -m benchmarks.scale [--trials 4000] [--steps 50] [--workers 2]

Wanted (docs/scale.md): 50 trials a second of 50 steps. Each worker writes to a run of its own in one project, by the
code of runs of kind `harbor`. Prints the rate by quarters, so that a slowdown with size is seen, the processor time and
the bytes of a trial, and the times of lists meanwhile; exits with 1 below 50 trials a second.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
import uuid
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from curation.projects.models import Member, Project
from curation.runs.models import Item, Run
from curation.trajectories.harbor import stage
from sandbox.harbor.command import HarborTrial, Job, JobPlan

WANTED = 50.0
TOGETHER = 50


def trial(folder: Path, number: int, steps: int) -> None:
    """Write a finished trial of about 1 KB a step."""
    (folder / "agent").mkdir(parents=True)
    identity = str(uuid.uuid4())
    written: list[dict[str, Any]] = [
        {"step_id": 1, "source": "user", "message": f"Task {number % 1000}: sort the file."}
    ]
    for step in range(2, steps + 2):
        call = {"tool_call_id": f"c{step}", "function_name": "bash", "arguments": {"command": f"sed -n {step}p a.csv"}}
        results = [{"source_call_id": f"c{step}", "content": f"{identity} {step} " + "abcdefgh " * 70}]
        written.append(
            {
                "step_id": step,
                "source": "agent",
                "message": f"I look at line {step}.",
                "tool_calls": [call],
                "observation": {"results": results},
            }
        )
    agent = {"name": "terminus-2", "version": "2", "model_name": "openai/small"}
    document = {"schema_version": "ATIF-v1.8", "session_id": identity, "agent": agent, "steps": written}
    config = {"trial_name": folder.name, "agent": {"name": "terminus-2", "model_name": "openai/small"}}
    result = {
        "id": identity,
        "task_name": f"acme/task-{number % 1000}",
        "trial_name": folder.name,
        "config": config,
        "agent_info": agent,
        "agent_result": {"n_input_tokens": 40_000, "n_output_tokens": 2_000, "cost_usd": 0.1},
        "verifier_result": {"rewards": {"reward": float(number % 3 == 0)}},
        "finished_at": "2026-11-26T00:00:00Z",
    }
    for name, value in (("agent/trajectory.json", document), ("config.json", config), ("result.json", result)):
        (folder / name).write_text(json.dumps(value))


def work(run_id: int, trials: int, steps: int, queue: Any) -> None:
    """Save trials as a worker does that watches a job; report the seconds of each batch, and those of its processor."""
    run = Run.objects.select_related("project").get(pk=run_id)
    item = Item.objects.create(run=run, stage="trials", key="job", state="claimed", lease_owner="bench")
    context = SimpleNamespace(run=run, save_progress=lambda *given: None, checkpoint=lambda: None)
    with tempfile.TemporaryDirectory() as folder:
        job = Job(Path(folder))
        watch = stage.Watch(cast(Any, context), item, job, JobPlan([]), [], "job", stage.Progress(total=trials))
        quarter: list[tuple[float, float]] = []
        for first in range(0, trials, TOGETHER):
            paths = [Path(folder, "job", f"t{run_id}-{number}") for number in range(first, first + TOGETHER)]
            for number, path in enumerate(paths, first):
                trial(path, number, steps)
            found = [HarborTrial(path, json.loads((path / "result.json").read_text())) for path in paths]
            began, worked = time.perf_counter(), time.process_time()
            watch._save(found)
            quarter.append((time.perf_counter() - began, time.process_time() - worked))
            for path in paths:
                for file in path.rglob("*.json"):
                    file.unlink()
    queue.put(quarter)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    call_command("migrate", verbosity=0)
    user, _ = User.objects.get_or_create(username="bench")
    project = Project.objects.create(slug=f"scale-{uuid.uuid4().hex[:6]}", name="Scale")
    Member.objects.create(project=project, user=user, role="admin")
    each = given.trials // given.workers // TOGETHER * TOGETHER
    runs = [Run.objects.create(project=project, kind="harbor", state="running").pk for _ in range(given.workers)]
    before = _bytes()
    process = get_context("spawn")
    queue = process.Queue()
    began = time.perf_counter()
    workers = [process.Process(target=work, args=(run, each, given.steps, queue)) for run in runs]
    for one in workers:
        one.start()
    waits: list[float] = []
    over = threading.Event()
    reader = threading.Thread(target=_read_lists, args=(project.slug, user, waits, over))
    reader.start()
    quarters = [queue.get() for _ in workers]
    for one in workers:
        one.join()
    over.set()
    reader.join()
    took = time.perf_counter() - began
    batches = len(quarters[0])
    for part in range(4):
        chunk = slice(part * batches // 4, (part + 1) * batches // 4)
        rate = sum(TOGETHER * len(times[chunk]) / sum(spent for spent, _ in times[chunk]) for times in quarters)
        print(f"quarter {part + 1}: {rate:6.0f} trials/s saved by {given.workers} workers")
    rate = sum(TOGETHER * len(times) / sum(spent for spent, _ in times) for times in quarters)
    worked = 1000 * sum(cpu for times in quarters for _, cpu in times) / (each * given.workers)
    waits.sort()
    print(f"all: {rate:.0f} trials/s saved; {took:.0f} s with writing the files")
    print(f"processor of the workers: {worked:.1f} ms a trial")
    print(f"bytes of a trial: {(_bytes() - before) / (each * given.workers):,.0f}")
    if waits:
        middle, most = waits[len(waits) // 2], waits[-1]
        print(f"lists and figures meanwhile: p50 {middle:.0f} ms, most {most:.0f} ms, {len(waits)} read")
    return int(rate < WANTED)


def _read_lists(slug: str, user: Any, waits: list[float], over: threading.Event) -> None:
    client = Client(HTTP_HOST="localhost")
    client.force_login(user)
    while not over.wait(0.5):
        for path in ("trajectories?limit=50", "trajectories?outcome=solved", "stats"):
            began = time.perf_counter()
            client.get(f"/api/v1/projects/{slug}/{path}")
            waits.append(1000 * (time.perf_counter() - began))
    connection.close()


def _bytes() -> int:
    """Return the size of the database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        else:
            cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    sys.exit(main())
