"""A static screen of many models by one worker process against a stub server of fixed latency.

Asked for: 11 models × 27 rows against 300 ms latency, within 1.3 × the ideal of calls × latency ÷ concurrency. The
concurrency is that of all endpoints together, and the stub server runs beside the worker on the same machine.

    python -m benchmarks.evaluations [models] [rows]

The ideal counts whole rounds: an endpoint of 3 slots needs 9 rounds for 27 rows.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from curation.evaluations.models import Split
    from curation.projects.models import Project

MODELS, ROWS = 11, 27
CONCURRENCY, LATENCY = 3, 0.3
FACTOR = 1.3


def main(models: int, rows: int) -> int:
    """Measures in a process of its own, whose data folder is deleted."""
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        here = os.environ | {"WINNOW_DATA": folder, "LOG_LEVEL": "WARNING"}
        command = [sys.executable, "-m", "benchmarks.evaluations", str(models), str(rows), "--measure"]
        return subprocess.run(command, env=here, check=False).returncode


def measure(models: int, rows: int) -> int:
    from django.core.management import call_command

    from curation.evaluations.models import Evaluation
    from curation.evaluations.screen.figures import overall
    from curation.llm.client.gateway import warm_up
    from curation.runs.calls.targets import targets_named
    from curation.runs.engine import dispatch
    from curation.runs.engine.event_loop import run_in_loop
    from curation.runs.engine.worker import drive
    from curation.runs.launch import launch
    from curation.runs.models import LIVE
    from tests.model_server import ModelServer

    call_command("migrate", verbosity=0)
    server = ModelServer()
    names = [f"model-{number}" for number in range(models)]
    try:
        server.behave(latency=LATENCY, text="aws s3 ls")
        with mock.patch.object(dispatch, "send_work"):  # this process is the one worker
            project, split = _fill(names, rows, server.api_base)
            run_in_loop(warm_up(targets_named(project, names, "models")))
            began, cpu = time.perf_counter(), time.process_time()
            params = {"models": names, "split": str(split.pk)}
            run = launch(project=project, kind="evaluate", params=params, user=None)
            while run.state in LIVE:
                drive(run.pk)
                run.refresh_from_db()
            seconds, spent = time.perf_counter() - began, time.process_time() - cpu
        answered = server.counts().answered
    finally:
        server.stop()
    calls = models * rows
    figures = overall(Evaluation.objects.get(run=run))
    assert (answered, run.items_done, len(figures)) == (calls, calls, models), run.error
    ideal = math.ceil(rows / CONCURRENCY) * LATENCY
    print(f"{models} models × {rows} rows = {calls} calls of {LATENCY * 1000:.0f} ms, {CONCURRENCY} at once a model")
    print(f"ideal    {ideal:7.2f} s")
    print(f"measured {seconds:7.2f} s, {calls / seconds:.0f} calls/s, {spent / calls * 1000:.1f} ms of CPU a call")
    print(f"measured ÷ ideal {seconds / ideal:.3f} (at most {FACTOR})")
    return int(seconds > FACTOR * ideal)


def _fill(names: list[str], rows: int, api_base: str) -> "tuple[Project, Split]":
    from curation.evaluations.models import Split, SplitRow, SplitRowText
    from curation.llm.models import Endpoint
    from curation.projects.models import Project

    Project.objects.filter(slug="bench-evaluations").delete()
    project = Project.objects.create(slug="bench-evaluations", name="bench-evaluations")
    for name in names:
        values = {"api_base": api_base, "max_concurrency": CONCURRENCY, "price_in": 0, "price_out": 0}
        Endpoint.objects.create(project=project, name=name, model=f"openai/{name}", **values)
    split = Split.objects.create(project=project, name="bench", rows_count=rows)
    for number in range(rows):
        row = SplitRow.objects.create(split=split, number=number, task_id=str(number), tier=f"tier {number % 3}")
        messages = [{"role": "user", "content": f"Task {number}: list the buckets. " + "Some context. " * 60}]
        SplitRowText.objects.create(row=row, messages=messages, expected="aws s3 ls")
    return project, split


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=int, nargs="?", default=MODELS)
    parser.add_argument("rows", type=int, nargs="?", default=ROWS)
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    sys.exit((measure if given.measure else main)(given.models, given.rows))
