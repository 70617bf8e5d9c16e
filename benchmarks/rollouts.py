"""Rollouts of one worker process against a stub server of fixed latency, beside the bound by latency.

Asked for (scenarios, "Figures to reach"): 64 rollouts at once against a model server of 500 ms latency, 10 turns each,
in bubblewrap, within 1.25 × of latency alone: turns × latency. The stub server runs beside the worker and takes its
part of the machine, and so do the sandboxes.

    python -m benchmarks.rollouts [rollouts] [--profile]
    python -m benchmarks.rollouts --probes 1000

The second one measures a probe of as many rollouts, each of which begins in the middle of an episode, beside whole
episodes of the same scenarios; its model server answers at once, so that sandboxes are what both wait for.

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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from curation.projects.models import Project
    from curation.runs.models import Run
    from tests.model_server import ModelServer

ROLLOUTS, AT_ONCE = 64, 64
TURNS, LATENCY = 10, 0.5
FACTOR, PROBE_FACTOR = 1.25, 1.25
STEPS = ("ls -la", "todo --help", "todo", "cat /etc/motd", "cd /tmp", "cd", "env", "echo 'hello world' > greeting.txt")


def main(arguments: Sequence[str]) -> int:
    """Measures in a process of its own, whose data folder is deleted."""
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        here = os.environ | {"WINNOW_DATA": folder, "LOG_LEVEL": "WARNING", "SANDBOX": "bubblewrap"}
        command = [sys.executable, "-m", "benchmarks.rollouts", "--measure", *arguments]
        return subprocess.run(command, env=here, check=False).returncode


@contextmanager
def _stage(scenarios: int, latency: float) -> "Iterator[tuple[Project, ModelServer]]":
    """A filled database and a warm worker, which is this process."""
    from django.core.management import call_command

    from curation.llm.client.gateway import warm_up
    from curation.runs.calls.targets import targets_named
    from curation.runs.engine import dispatch
    from curation.runs.engine.event_loop import run_in_loop
    from curation.runs.workers.sandbox import backend
    from tests.model_server import ModelServer

    call_command("migrate", verbosity=0)
    backend()  # a worker finds out what works here once, when it starts
    server = ModelServer()
    try:
        server.behave(latency=latency)
        with mock.patch.object(dispatch, "send_work"):
            project = _fill(scenarios, server.api_base)
            run_in_loop(warm_up(targets_named(project, ["operator-a"], "model")))
            yield project, server
    finally:
        server.stop()


def measure_probes(probes: int) -> int:
    """Each scenario has one episode, of which all steps are probed, and then half as many episodes as rollouts."""
    from django.db.models import Max, Min

    from curation.runs.models import Item
    from curation.runs.workers.sandbox import backend
    from curation.trajectories.models import Outcome, Trajectory
    from sandbox.protocol import Setup

    machine, scenarios = backend(), max(1, probes // 40)
    with _stage(scenarios, 0.0) as (project, _):
        _drive(project, "rollout", {"samples": 1}, False)
        every = {"steps": "all", "samples": 8, "rounds": 3, "most_rollouts": probes}
        *_, probe = _drive(project, "probe", every, False)
        samples = max(1, probes // scenarios // 2)
        seconds, *_, whole = _drive(project, "rollout", {"samples": samples}, False)

    def start(_: int) -> None:
        machine.session(Setup()).close()

    began, times = time.perf_counter(), max(20, probes // 5)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(start, range(times)))
    starts = times / (time.perf_counter() - began)
    rounds = Item.objects.filter(run=probe, stage__startswith="round ", state="done")
    ends = rounds.aggregate(first=Min("claimed_at"), last=Max("finished_at"))
    played, episodes = rounds.count(), scenarios * samples
    solved = Trajectory.objects.filter(run=whole, outcome=Outcome.SOLVED).count()
    assert (probe.result["rollouts"], solved) == (played, episodes), (probe.result, solved)
    spent = (ends["last"] - ends["first"]).total_seconds()
    left = f"{probe.result['differ']} of {scenarios} replays differ"
    print(f"{played} rollouts of a probe: {spent:.1f} s, {played / spent:.1f}/s; {left}")
    print(f"{episodes} whole episodes of the same scenarios: {seconds:.1f} s, {episodes / seconds:.1f}/s")
    print(f"{times} sandboxes started and removed, {AT_ONCE} at once: {starts:.1f}/s")
    slower = (episodes / seconds) / (played / spent)
    print(f"whole episodes ÷ rollouts of a probe, a second: {slower:.2f} (at most {PROBE_FACTOR})")
    return int(slower > PROBE_FACTOR)


def measure(rollouts: int, profile: bool) -> int:
    from curation.trajectories.models import Outcome, Trajectory

    with _stage(rollouts, LATENCY) as (project, server):
        seconds, cpu, below, run = _drive(project, "rollout", {"samples": 1}, profile)
        answered, most = server.counts().answered, server.counts().most_at_once
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


def _drive(
    project: "Project", kind: str, params: dict[str, object], profile: bool
) -> "tuple[float, float, float, Run]":
    """Seconds, CPU seconds of the worker and of its sandboxes, from the launched run to its end."""
    from curation.runs.engine.worker import drive
    from curation.runs.launch import launch
    from curation.runs.models import LIVE, Run

    run = launch(project=project, kind=kind, params={"model": "operator-a", **params}, user=None)
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
    parser.add_argument("--probes", type=int, metavar="ROLLOUTS")
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    if not given.measure:
        sys.exit(main(sys.argv[1:]))
    sys.exit(measure_probes(given.probes) if given.probes else measure(given.rollouts, given.profile))
