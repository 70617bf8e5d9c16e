"""Rollouts of one worker process against a stub server of fixed latency, beside the bound by latency.

Asked for (scenarios, "Figures to reach"): 64 rollouts at once against a model server of 500 ms latency, 10 turns each,
in bubblewrap, within 1.25 × of latency alone: turns × latency. The stub server runs beside the worker and takes its
part of the machine, and so do the sandboxes.

    python -m benchmarks.rollouts [rollouts] [--profile]

The database is a temporary SQLite file, unless DATABASE_URL names another one; there `bench-rollouts` stays.
"""

import argparse
import cProfile
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from curation.projects.models import Project
    from curation.runs.models import Run

ROLLOUTS, AT_ONCE = 64, 64
TURNS, LATENCY = 10, 0.5
FACTOR = 1.25
STEPS = ("ls -la", "todo --help", "todo", "cat /etc/motd", "cd /tmp", "cd", "env", "echo 'hello world' > greeting.txt")


def main(rollouts: int, profile: bool) -> int:
    """Measures in a process of its own, whose data folder is deleted."""
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        here = os.environ | {"WINNOW_DATA": folder, "LOG_LEVEL": "WARNING", "SANDBOX": "bubblewrap"}
        command = [sys.executable, "-m", "benchmarks.rollouts", "--measure", str(rollouts)]
        return subprocess.run([*command, *(["--profile"] if profile else [])], env=here, check=False).returncode


def measure(rollouts: int, profile: bool) -> int:
    from django.core.management import call_command

    from curation.llm.client.gateway import warm_up
    from curation.runs.calls.targets import targets_named
    from curation.runs.engine import dispatch
    from curation.runs.engine.event_loop import run_in_loop
    from curation.runs.workers.sandbox import backend
    from curation.trajectories.models import Outcome, Trajectory
    from tests.model_server import ModelServer

    call_command("migrate", verbosity=0)
    backend()  # a worker finds out what works here once, when it starts
    server = ModelServer()
    try:
        server.behave(latency=LATENCY)
        with mock.patch.object(dispatch, "send_work"):  # this process is the one worker
            project = _fill(rollouts, server.api_base)
            run_in_loop(warm_up(targets_named(project, ["operator-a"], "model")))
            seconds, cpu, below, run = _roll_out(project, profile)
        answered, most = server.counts().answered, server.counts().most_at_once
    finally:
        server.stop()
    turns = rollouts * TURNS
    ideal = turns * LATENCY / min(rollouts, AT_ONCE)
    solved = Trajectory.objects.filter(run=run, outcome=Outcome.SOLVED, commands=TURNS - 1).count()
    assert (answered, solved) == (turns, rollouts), (answered, solved, run.result)
    print(f"{rollouts} rollouts of {TURNS} turns, {LATENCY * 1000:.0f} ms each (the server saw {most} calls at once)")
    print(f"ideal    {ideal:7.1f} s")
    print(
        f"measured {seconds:7.1f} s, {turns / seconds:.0f} turns/s, {cpu / turns * 1000:.2f} ms of CPU a turn in the "
        f"worker, {below / turns * 1000:.2f} ms in its sandboxes"
    )
    print(f"measured ÷ ideal {seconds / ideal:.3f} (at most {FACTOR})")
    return int(seconds > FACTOR * ideal)


def _fill(rollouts: int, api_base: str) -> "Project":
    """Admitted scenarios, each with the script that its operator plays: all turns but the last are commands."""
    from curation.llm.models import Endpoint
    from curation.projects.models import Project
    from tests.factories import make_scenario

    Project.objects.filter(slug="bench-rollouts").delete()
    project = Project.objects.create(slug="bench-rollouts", name="bench-rollouts")
    values = {"api_base": api_base, "max_concurrency": AT_ONCE, "price_in": 1, "price_out": 2}
    Endpoint.objects.create(project=project, name="operator-a", model="openai/operator-a", **values)
    steps = [STEPS[turn % len(STEPS)] for turn in range(TURNS - 2)]
    for number in range(rollouts):
        script = ";;".join([*steps, "echo 'hello world' > greeting.txt", "exit"])
        said = {"kind": "motd", "text": f"Desk {number}: work is announced by todo. SCRIPT[{script}]"}
        make_scenario(project, f"bench {number}", bundle={"announcement": said})
    return project


def _roll_out(project: "Project", profile: bool) -> "tuple[float, float, float, Run]":
    """Seconds, CPU seconds of the worker and of its sandboxes, from the launched run to its end."""
    from curation.runs.engine.worker import drive
    from curation.runs.launch import launch
    from curation.runs.models import LIVE, Run

    run = launch(project=project, kind="rollout", params={"model": "operator-a", "samples": 1}, user=None)
    profiler = cProfile.Profile()
    began, cpu, below = time.perf_counter(), time.process_time(), _below()
    if profile:
        profiler.enable()
    while Run.objects.get(pk=run.pk).state in LIVE:
        drive(run.pk)
    if profile:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(45)
    seconds, spent, sandboxes = time.perf_counter() - began, time.process_time() - cpu, _below() - below
    run.refresh_from_db()
    assert run.state == "succeeded", run.error
    return seconds, spent, sandboxes, run


def _below() -> float:
    """CPU seconds of the processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rollouts", type=int, nargs="?", default=ROLLOUTS)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    sys.exit((measure if given.measure else main)(given.rollouts, given.profile))
