"""A duel run in bad weather: real workers that are killed, a model server that misbehaves, a broker that is restarted.

`python -m tests.runs.storm <duels> <kills> [--redis PORT]` works in the database, data folder and broker that the
environment names, not in a test database, and prints the outcome as JSON.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from curation.dashboard.demo.children import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
JUDGES = ("judge-a", "judge-b", "judge-c")
# Each item is one call: no control duels, and nobody reads the answers for leaks.
SETTINGS = {"panel": {"judges": list(JUDGES), "controls": 0.0}, "generation": {"read_leaks": False}}
WEATHER: dict[str, Any] = {"latency": 0.1, "rate_limit": 0.10, "error": 0.05, "broken": 0.03, "hang": 0.02}
GIVES_UP_AFTER = 330.0


class Workers:
    """Worker processes of `manage.py demo`, which are killed and restarted together. Each has a log in `folder`."""

    def __init__(self, folder: Path, names: Sequence[str] = ("models", "worker")) -> None:
        self._logs = {name: folder / f"{name}.log" for name in names}
        self.start()

    def start(self) -> None:
        self._began: dict[str, int] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        for name, path in self._logs.items():
            command = [sys.executable, "-m", *COMMANDS[name]]
            with path.open("ab") as log:
                self._began[name] = log.tell()
                process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
            self._processes.append(process)

    def kill(self) -> list[int]:
        """SIGKILL to the workers alone; return the processes below them that do not end too."""
        below = self._below()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        return survivors_of(below)

    def wait_for_log(self, text: str, seconds: float = 10.0) -> None:
        """Wait until all workers that were started last have logged `text`."""
        until = time.monotonic() + seconds
        for name, path in self._logs.items():
            while text.encode() not in path.read_bytes()[self._began[name] :]:
                assert time.monotonic() < until, f"{name} did not log {text!r}"
                time.sleep(0.05)

    def end(self) -> list[int]:
        """Stop the workers; return the processes below them that do not end too."""
        below = self._below()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
        return self.kill() + survivors_of(below)

    def _below(self) -> list[int]:
        return [pid for process in self._processes for pid in descendants(process.pid)]


class Redis:
    """A Redis of its own, which loses everything when it is restarted."""

    def __init__(self, port: int, folder: Path) -> None:
        self._command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def descendants(pid: int) -> list[int]:
    """All processes below this one."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in listed.splitlines())}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {pid})


def alive(pid: int) -> bool:
    """Whether the process runs; one that is dead and not yet collected does not."""
    state = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError):
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def survivors_of(pids: list[int], seconds: float = 20.0) -> list[int]:
    """The processes among `pids` that still run. One that was just started loads Django before it sees its parent."""
    until = time.monotonic() + seconds
    while (running := [pid for pid in pids if alive(pid)]) and time.monotonic() < until:
        time.sleep(0.02)
    return running


def storm(duels: int, kills: int, redis: "Redis | None") -> dict[str, Any]:
    from django.core.management import call_command

    from curation.runs.launch import launch
    from curation.runs.models import LIVE, Run
    from tests.model_server import ModelServer

    call_command("migrate", verbosity=0)
    server = ModelServer()
    server.behave(**WEATHER)
    workers = Workers(Path(os.environ["WINNOW_DATA"]))
    survivors: list[int] = []
    began = time.monotonic()
    try:
        project = fill(duels, server.api_base)
        params = {"king_model": "king", "challenger_model": "challenger", "judges": list(JUDGES)}
        run = launch(project=project, kind="duel", params=params, user=None)
        expected = duels * (2 + 2 * len(JUDGES))
        marks = [expected * (number + 1) // (kills + 1) for number in range(kills)]
        restart_at = expected // 2
        while run.state in LIVE and time.monotonic() - began < GIVES_UP_AFTER:
            run = Run.objects.get(pk=run.pk)
            if marks and run.items_done >= marks[0]:
                marks.pop(0)
                survivors += workers.kill()
                workers.start()
            if redis is not None and run.items_done >= restart_at:
                redis.stop()
                workers.wait_for_log("Connection refused")
                redis.start()
                redis = None
            time.sleep(0.2)
        seconds = time.monotonic() - began
        answered = server.counts()
    finally:
        survivors += workers.end()
        server.stop()
    return {
        "state": run.state,
        "error": run.error,
        "seconds": round(seconds, 1),
        "kills_left": len(marks),
        "survivors": survivors,
        "server": {"answered": answered.answered, "asked": answered.asked, "rate_limited": answered.rate_limited},
        **figures(run),
    }


def fill(duels: int, api_base: str) -> Any:
    """A project with prompts, their records and five endpoints with prices."""
    from tests.factories import HISTORY, make_endpoint, make_project, make_prompt, make_pull_request

    project = make_project("storm", settings_json=SETTINGS)
    for name in ("king", "challenger", *JUDGES):
        values = {"model": f"openai/{name}", "api_base": api_base, "max_concurrency": 24, "params": {"timeout": 3}}
        make_endpoint(project, name, price_in=Decimal("0.15"), price_out=Decimal("0.6"), **values)
    for number in range(duels):
        prompt = make_prompt(project, history=[*HISTORY, {"role": "user", "content": f"Turn {number}"}])
        make_pull_request(project, prompt.instance_id, title="Round half to even", patch="+    quantise(total)")
    return project


def figures(run: Any) -> dict[str, Any]:
    """The rows in the database, counted by plain queries beside the run's own counters."""
    from django.db.models import Count, Sum

    from curation.duels.models import Answer, Duel, Verdict
    from curation.runs.models import Call, Item

    calls = Call.objects.filter(run=run)
    verdicts = Verdict.objects.filter(duel__project=run.project)
    places = verdicts.values("duel", "judge", "order").annotate(n=Count("id"))
    accepted = Answer.objects.filter(prompt__project=run.project, refusal="")
    return {
        "items": dict(Item.objects.filter(run=run).values_list("state").annotate(n=Count("id")).order_by()),
        "counted": {name: getattr(run, f"items_{name}") for name in ("total", "done", "failed", "skipped")},
        "failures": list(Item.objects.filter(run=run, state="failed").values_list("reason", flat=True)[:5]),
        "duels": Duel.objects.filter(project=run.project).count(),
        "verdicts": verdicts.count(),
        "parsed": verdicts.filter(parsed=True).count(),
        "verdict_places": len(places),
        "accepted": accepted.count(),
        "answered_sides": len(accepted.values("prompt", "side").annotate(n=Count("id"))),
        "calls": dict(calls.values_list("status").annotate(n=Count("id")).order_by()),
        "calls_counted": run.calls,
        "unknown": calls.filter(cost=None).count(),
        "unknown_counted": run.cost_unknown_calls,
        "cost": str((calls.aggregate(n=Sum("cost"))["n"] or Decimal(0)).quantize(Decimal("1e-8"))),
        "cost_counted": str(run.cost.quantize(Decimal("1e-8"))),
        "tokens": [calls.aggregate(n=Sum(f"tokens_{way}"))["n"] for way in ("in", "out")],
        "tokens_counted": [run.tokens_in, run.tokens_out],
        "answered_twice": len(calls.filter(status="ok").values("content_hash").annotate(n=Count("id")).filter(n__gt=1)),
        "events": list(run.events.order_by("id").values_list("message", flat=True)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("duels", type=int)
    parser.add_argument("kills", type=int)
    parser.add_argument("--redis", type=int, default=0, help="Port of a Redis to start, and to restart half-way.")
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    own = Redis(given.redis, Path(os.environ["WINNOW_DATA"])) if given.redis else None
    try:
        import django

        django.setup()
        print(json.dumps(storm(given.duels, given.kills, own)))
    finally:
        if own is not None:
            own.stop()
