"""Worker processes that die: `python -m tests.runs.dying_workers poison|kills <n>` prints the outcome of the run.

`poison`: two items of the stage of model calls, and one of the other stage, kill the process that works on them.
`kills`: the processes are killed `n` times, one or all of them, at random. Leases are short, so that it takes a minute.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

from pydantic import BaseModel, ConfigDict

ITEMS, WORKERS = 60, 2
KILLERS = {"ask": ("7", "44"), "count": ("5",)}
LEASE, TOGETHER, BEAT = timedelta(seconds=1.2), timedelta(seconds=0.5), 0.15


def setup() -> None:
    """Register the kind `dying`. Imports wait for Django."""
    from curation.runs.kinds import Kind, LlmContext, PlannedItem, Stage, WorkContext, Write, register
    from curation.runs.models import Item, Run

    class DyingParams(BaseModel):
        model_config = ConfigDict(extra="forbid")
        poison: bool = False

    class AskStage:
        name, queue, most_open = "ask", "llm", 16

        def __init__(self, params: DyingParams) -> None:
            self._killers = KILLERS["ask"] if params.poison else ()

        def plan(self, run: Run) -> Iterable[PlannedItem]:
            return [PlannedItem(str(number)) for number in range(ITEMS)]

        def targets(self, run: Run) -> Sequence[Any]:
            return []

        def load(self, run: Run, items: Sequence[Item]) -> dict[int, None]:
            return {}

        async def work(self, context: LlmContext, item: Item, job: None) -> Write:
            await asyncio.sleep(0.02)
            if item.key in self._killers:
                os.kill(os.getpid(), signal.SIGKILL)
            await asyncio.sleep(0.03)
            return lambda: {"key": item.key}

    class CountStage:
        name, queue = "count", "default"

        def __init__(self, params: DyingParams) -> None:
            self._killers = KILLERS["count"] if params.poison else ()

        def plan(self, run: Run) -> Iterable[PlannedItem]:
            return [PlannedItem(str(number)) for number in range(ITEMS)]

        def work(self, context: WorkContext, item: Item) -> Write:
            if item.key in self._killers:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.02)
            return lambda: {"key": item.key}

    class DyingRun(Kind[DyingParams]):
        name, title, params, launch_page = "dying", "Dying", DyingParams, ""

        def stages(self, params: DyingParams) -> Sequence[Stage]:
            return [AskStage(params), CountStage(params)]

    register(DyingRun())


def lead(*, poison: bool, kills: int) -> dict[str, object]:
    from django.core.management import call_command
    from django.db import connections

    from curation.runs.engine import dispatch
    from curation.runs.launch import launch
    from curation.runs.models import LIVE, Item, ItemState, Run
    from tests.factories import make_project

    call_command("migrate", verbosity=0)
    with mock.patch.object(dispatch, "send_work"):
        run = launch(project=make_project(), kind="dying", params={"poison": poison}, user=None)
    workers: set[int] = set()
    deaths, dice = 0, random.Random(11)
    while True:
        connections.close_all()  # a child must not inherit an open connection
        while len(workers) < WORKERS:
            workers.add(os.fork() or follow(run.pk))
        pause = dice.uniform(0.05, 0.6) if kills else 0.2
        time.sleep(pause)
        if kills:
            for victim in dice.choice([list(workers), list(workers)[:1]]):
                os.kill(victim, signal.SIGKILL)
                os.waitpid(victim, 0)
                workers.remove(victim)
                deaths += 1
            kills -= 1
        ended = {pid for pid in workers if os.waitpid(pid, os.WNOHANG)[0]}
        deaths += len(ended)
        workers -= ended
        if not kills and not Run.objects.filter(pk=run.pk, state__in=LIVE).exists():
            break
    for worker in workers:
        os.waitpid(worker, 0)
    run = Run.objects.get(pk=run.pk)
    items = Item.objects.filter(run=run)
    return {
        "state": run.state,
        "deaths": deaths,
        "done": items.filter(state=ItemState.DONE).count(),
        "counted": [run.items_total, run.items_done, run.items_failed],
        "failed": {f"{item.stage} {item.key}": item.reason for item in Item.objects.failed(run)},
        "events": list(run.events.values_list("message", flat=True)),
    }


@contextmanager
def hurry() -> Iterator[None]:
    """Make leases short, and send no messages."""
    from curation.runs.engine import claim, dispatch, heartbeat, reap

    with (
        mock.patch.object(dispatch, "send_work"),
        mock.patch.object(claim, "LEASE", LEASE),
        mock.patch.object(reap, "LEASE", LEASE),
        mock.patch.object(reap, "TOGETHER", TOGETHER),
        mock.patch.object(reap, "EVERY_SECONDS", 0.2),
        mock.patch.object(heartbeat, "EVERY_SECONDS", BEAT),
    ):
        yield


def follow(run_id: int) -> int:
    """Work on the run's messages until it has ended, as a worker would; the process ends here."""
    from django.db import Error, connection

    from curation.runs.engine import reap, worker
    from curation.runs.models import LIVE, Run

    with hurry(), mock.patch.object(worker, "ALONE", ("-m", "tests.runs.dying_workers", "alone")):
        while run := Run.objects.filter(pk=run_id, state__in=LIVE).first():
            try:
                if run.dispatched_at:
                    worker.drive(run_id, run.dispatched_at.isoformat())
                reap.reap_all()
            except Error as error:
                print(error, file=sys.stderr)
                connection.close()
            time.sleep(0.05)
    os._exit(0)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    setup()
    if sys.argv[1] == "alone":
        from django.core.management import call_command

        with hurry():
            call_command("work_alone", *sys.argv[2:])
        sys.exit()
    print(json.dumps(lead(poison=sys.argv[1] == "poison", kills=int(sys.argv[2]))))
