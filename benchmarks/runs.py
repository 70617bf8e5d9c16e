"""Duels judged by one worker process against a stub server of fixed latency, beside the bound by latency.

Asked for (duels, "Must hold"): 1,000 duels × 3 judges × 2 orders, 500 ms latency, 64 calls at once, within 1.25 × the
ideal of calls × latency ÷ concurrency. The stub server runs beside the worker and takes its part of the machine.

    python -m benchmarks.runs [duels] [--profile]

The database is a temporary SQLite file, unless DATABASE_URL names another one; then project `bench-runs` stays there.
"""

import argparse
import cProfile
import os
import pstats
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from curation.projects.models import Project
    from curation.runs.models import Run

DUELS = 1_000
JUDGES, ORDERS = 3, 2
CONCURRENCY, LATENCY = 64, 0.5
FACTOR = 1.25
HISTORY_TURNS, TURN = 6, "The test fails with a rounding error in billing/totals.py; look at how it adds. " * 10


def main(duels: int, profile: bool) -> int:
    """Measures in a process of its own, whose data folder is deleted."""
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        here = os.environ | {"WINNOW_DATA": folder, "LOG_LEVEL": "WARNING"}
        command = [
            sys.executable,
            "-m",
            "benchmarks.runs",
            "--measure",
            str(duels),
            *(["--profile"] if profile else []),
        ]
        return subprocess.run(command, env=here, check=False).returncode


def measure(duels: int, profile: bool) -> int:
    from django.core.management import call_command

    from curation.llm.client.gateway import warm_up
    from curation.runs.calls.targets import targets_named
    from curation.runs.engine import dispatch
    from curation.runs.engine.event_loop import run_in_loop
    from curation.runs.models import Call, CallStatus
    from tests.model_server import ModelServer

    call_command("migrate", verbosity=0)
    server = ModelServer()
    try:
        server.behave(latency=LATENCY)
        with mock.patch.object(dispatch, "send_work"):  # this process is the one worker
            project = _fill(duels, server.api_base)
            run_in_loop(warm_up(targets_named(project, ["judge-0"], "judges")))
            seconds, cpu, run = _judge(project, duels, profile)
        answered, most = server.counts().answered, server.counts().most_at_once
    finally:
        server.stop()
    calls = duels * JUDGES * ORDERS
    ideal = calls * LATENCY / CONCURRENCY
    assert (answered, Call.objects.filter(run=run, status=CallStatus.OK).count()) == (calls, calls)
    print(
        f"{calls:,} calls of {LATENCY * 1000:.0f} ms, {CONCURRENCY} at once (the server saw {most} per judge at most)"
    )
    print(f"ideal    {ideal:7.1f} s")
    print(f"measured {seconds:7.1f} s, {calls / seconds:.0f} calls/s, {cpu / calls * 1000:.2f} ms of CPU a call")
    print(f"measured ÷ ideal {seconds / ideal:.3f} (at most {FACTOR})")
    return int(seconds > FACTOR * ideal)


def _fill(duels: int, api_base: str) -> "Project":
    """Prompts with both answers given, and three judges that share the concurrency."""
    from curation.duels.models import Answer, AnswerText, Prompt, PromptText, Session
    from curation.llm.models import Endpoint
    from curation.projects.models import Project

    Project.objects.filter(slug="bench-runs").delete()
    project = Project.objects.create(slug="bench-runs", name="bench-runs", settings_json={"panel": {"controls": 0.0}})
    shares = [CONCURRENCY // JUDGES + (number < CONCURRENCY % JUDGES) for number in range(JUDGES)]
    for number, share in enumerate(shares):
        values = {"api_base": api_base, "max_concurrency": share, "price_in": 1, "price_out": 2}
        Endpoint.objects.create(project=project, name=f"judge-{number}", model=f"openai/judge-{number}", **values)
    prompts = Prompt.objects.bulk_create(
        Prompt(project=project, source="bench", row_offset=n, turn_index=2, instance_id=f"bench__{n}", tokens=1000)
        for n in range(duels)
    )
    history = [{"role": "user" if n % 2 else "assistant", "content": TURN} for n in range(HISTORY_TURNS)]
    sessions = Session.objects.bulk_create(
        Session(project=project, messages=[{"role": "user", "content": f"Task {prompt.pk}"}, *history])
        for prompt in prompts
    )
    PromptText.objects.bulk_create(
        PromptText(prompt=prompt, session=session, at=len(history) + 1, reference={})
        for prompt, session in zip(prompts, sessions, strict=True)
    )
    for side, text in (("king", "ls -la"), ("challenger", "sed -n '1,80p' billing/totals.py")):
        answers = Answer.objects.bulk_create(
            Answer(prompt=prompt, side=side, model=side, fingerprint=f"{side}-{prompt.pk}", instructions_hash="0" * 64)
            for prompt in prompts
        )
        AnswerText.objects.bulk_create(
            AnswerText(answer=answer, text=f"THOUGHT: I look.\n\n```bash\n{text}\n```") for answer in answers
        )
    return project


def _judge(project: "Project", duels: int, profile: bool) -> "tuple[float, float, Run]":
    """Seconds and CPU seconds of the judge stage: from the launched run to the first item of the next stage."""
    from curation.runs.engine.worker import drive
    from curation.runs.launch import launch
    from curation.runs.models import Run

    run = launch(project=project, kind="judge", params={"judges": [f"judge-{n}" for n in range(JUDGES)]}, user=None)
    profiler = cProfile.Profile()
    began, cpu = time.perf_counter(), time.process_time()
    if profile:
        profiler.enable()
    while Run.objects.get(pk=run.pk).stage == "judge":
        drive(run.pk)
    if profile:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(45)
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    run.refresh_from_db()
    assert run.items_done >= duels * JUDGES * ORDERS, run.error
    return seconds, spent, run


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("duels", type=int, nargs="?", default=DUELS)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    sys.exit((measure if given.measure else main)(given.duels, given.profile))
