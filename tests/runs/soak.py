"""Waves of imports, duels and exports while workers, Redis and PostgreSQL are killed.

`python -m tests.runs.soak <worker kills> <Redis kills> <PostgreSQL restarts>` works in the database, data folder and
broker that the environment names, and prints its findings as JSON. `POSTGRES_RESTART` is the command that restarts
PostgreSQL at once, `REDIS_PORT` the port of a Redis of its own.

Every wave is a project with the same rows and the same models, which always answer a request alike. So each must end
with the rows of the first, which runs before anything is killed.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from tests.runs.storm import JUDGES, WEATHER, Redis, Workers

T = TypeVar("T")
TURNS, BAD_ROWS = 10, 3
WAVES_AT_ONCE = 4
GAP_SECONDS, MOST_RECOVERING = 3.0, 6
# The longest time that nothing may happen for, and that the whole may take.
STUCK_SECONDS, GIVES_UP_AFTER = 150.0, 2400.0
DUEL = {"king_model": "king", "challenger_model": "challenger", "judges": list(JUDGES)}
EXPORT = {"recipe": {"formats": ["sft-messages", "dpo"], "splits": {"train": 0.7, "val": 0.3}}}


def patient(do: Callable[[], T]) -> T:
    """Do it again while PostgreSQL is down. Repeating committed work must do no harm."""
    from django.db import InterfaceError, OperationalError, connection

    until = time.monotonic() + 60
    while True:
        try:
            return do()
        except (OperationalError, InterfaceError):
            if time.monotonic() > until:
                raise
            connection.close()
            time.sleep(0.1)


@dataclass
class Wave:
    """A project on its way: import, duels, approval, export. `steps` are the ids of its runs so far."""

    slug: str
    runs: dict[str, int] = field(default_factory=dict)
    done: bool = False

    def advance(self) -> None:
        """Launch the next run if the last one has ended."""
        from curation.runs.launch import launch
        from curation.runs.models import LIVE, Run
        from tests.imports.bringing import as_lines, chat, upload

        project = _project(self.slug)
        last = Run.objects.filter(project=project).order_by("-id").first()
        if last is not None:
            self.runs[last.kind] = last.pk
            if last.state in LIVE:
                return
            if last.state != "succeeded" or last.kind == "export":
                self.done = True
                return
        if last is None:
            rows = [chat(number) for number in range(TURNS)] + ["{"] * BAD_ROWS
            params = {"kind": "turns", "upload": upload(project, as_lines(rows))}
            launch(project=project, kind="import", params=params, user=None)
        elif last.kind == "import":
            launch(project=project, kind="duel", params=DUEL, user=None)
        else:
            self._approve(project)
            launch(project=project, kind="export", params=EXPORT, user=None)

    def _approve(self, project: Any) -> None:
        from django.contrib.auth.models import User
        from django.db import transaction

        from curation.samples.models import Sample
        from tests.exports.exporting import approve

        person, _ = User.objects.get_or_create(username="soak")
        with transaction.atomic():
            for sample in Sample.objects.of(project).filter(status="pending").order_by("id"):
                approve(sample, by=person)


def _project(slug: str) -> Any:
    """The wave's project with its endpoints and pull-request records, made in one transaction."""
    from django.db import transaction

    from curation.projects.models import Project
    from tests.factories import make_endpoint, make_project, make_pull_request

    with transaction.atomic():
        project = Project.objects.filter(slug=slug).first()
        if project is None:
            # The server's judges know the rubric of turns; the rows alone would be recognised as chat. They read no
            # leaks: a reader whose replies do not parse is left after a while, by each process.
            settings = {"data": {"kind": "turns"}, "generation": {"read_leaks": False}}
            project = make_project(slug, settings_json={**settings, "panel": {"judges": list(JUDGES)}})
            for number in range(TURNS):
                make_pull_request(project, f"acme__billing-{number}", title="Round half to even", patch="+    round(x)")
            for name in ("king", "challenger", *JUDGES):
                values = {"max_concurrency": 24, "params": {"timeout": 3}, "api_base": os.environ["SOAK_API_BASE"]}
                prices = {"price_in": Decimal("0.15"), "price_out": Decimal("0.6")}
                make_endpoint(project, name, model=f"openai/{name}", **values, **prices)
    return project


@dataclass
class Kill:
    """`watched` are the items that were claimed when it came, and since when; `done` is how many were done by then.

    `freed` are the seconds until each of them had ended or could be claimed again, `seconds` those until items were
    done again too.
    """

    what: str
    at: float
    watched: dict[int, datetime | None]
    done: int
    freed: float | None = None
    seconds: float | None = None

    def follow(self) -> None:
        from curation.runs.models import Item

        after = time.monotonic() - self.at
        now = dict(Item.objects.filter(pk__in=self.watched, state="claimed").values_list("id", "claimed_at"))
        self.watched = {pk: at for pk, at in self.watched.items() if now.get(pk) == at}
        if not self.watched and self.freed is None:
            self.freed = after
        if self.freed is not None and Item.objects.filter(state="done").count() > self.done:
            self.seconds = after


class Killer:
    """Kills one thing at a time, in a fixed mixed order."""

    def __init__(self, workers: Sequence[Workers], redis: Redis, *, counts: dict[str, int]) -> None:
        self._workers, self._redis = itertools.cycle(workers), redis
        self._left = [what for what, count in counts.items() for _ in range(count)]
        random.Random(11).shuffle(self._left)
        self.kills: list[Kill] = []
        self.survivors: list[int] = []

    @property
    def left(self) -> int:
        return len(self._left) + sum(kill.seconds is None for kill in self.kills)

    def step(self) -> None:
        """Follow what recovers; kill the next thing if something was done since the last kill, or nothing ever would
        be."""
        from curation.runs.models import Item

        recovering = [kill for kill in self.kills if kill.seconds is None]
        for kill in recovering:
            patient(kill.follow)
        since = time.monotonic() - self.kills[-1].at if self.kills else GAP_SECONDS
        if not self._left or since < GAP_SECONDS or len(recovering) > MOST_RECOVERING:
            return
        claimed = patient(lambda: dict(Item.objects.filter(state="claimed").values_list("id", "claimed_at")))
        done = patient(lambda: Item.objects.filter(state="done").count())
        if not claimed or (self.kills and done == self.kills[-1].done):
            return
        what = self._left.pop()
        self.kills.append(Kill(what, time.monotonic(), claimed, done))
        getattr(self, f"_kill_{what}")()

    def _kill_worker(self) -> None:
        workers = next(self._workers)
        self.survivors += workers.kill()
        workers.start()

    def _kill_redis(self) -> None:
        self._redis.stop()
        time.sleep(0.5)
        self._redis.start()

    def _kill_postgres(self) -> None:
        subprocess.run(shlex.split(os.environ["POSTGRES_RESTART"]), check=True, stdout=subprocess.DEVNULL)


def soak(counts: dict[str, int]) -> dict[str, Any]:
    from django.core.management import call_command

    from tests.model_server import ModelServer

    folder = Path(os.environ["WINNOW_DATA"])
    redis = Redis(int(os.environ["REDIS_PORT"]), folder)
    call_command("migrate", verbosity=0)
    server = ModelServer()
    os.environ["SOAK_API_BASE"] = server.api_base
    server.behave(**WEATHER)
    workers = [Workers(folder, [name]) for name in ("models", "worker")]
    began = time.monotonic()
    try:
        waves = [Wave("wave-0")]
        _follow(waves, lambda: waves[0].done)
        quiet = time.monotonic() - began
        killer = Killer(workers, redis, counts=counts)

        def step() -> bool:
            killer.step()
            if killer.left and sum(not wave.done for wave in waves) < WAVES_AT_ONCE:
                waves.append(Wave(f"wave-{len(waves)}"))
            return killer.left == 0 and all(wave.done for wave in waves)

        _follow(waves, step)
        answered = server.counts().answered
    finally:
        for running in workers:
            running.end()
        server.stop()
        redis.stop()
    first, *others = [_figures(wave) for wave in waves]
    return {
        "waves": len(waves),
        "quiet_seconds": round(quiet, 1),
        "seconds": round(time.monotonic() - began, 1),
        "kills_left": killer.left,
        "freed": {what: sorted(round(k.freed or 0, 1) for k in killer.kills if k.what == what) for what in counts},
        "recovered": {
            what: sorted(round(k.seconds or 0, 1) for k in killer.kills if k.what == what) for what in counts
        },
        "survivors": killer.survivors,
        "answered": answered,
        "ok": sum(figures["calls"].get("ok", 0) for figures in [first, *others]),
        "lost": sum(figures["calls"].get("lost", 0) for figures in [first, *others]),
        "first": first,
        "others": others,
    }


def _follow(waves: list[Wave], is_over: Callable[[], bool]) -> None:
    began = moved = time.monotonic()
    before = None
    while not is_over():
        for wave in waves:
            if not wave.done:
                patient(wave.advance)
        now = patient(_progress)
        if now != before:
            before, moved = now, time.monotonic()
        if time.monotonic() - moved > STUCK_SECONDS or time.monotonic() - began > GIVES_UP_AFTER:
            print(f"stuck: {[wave for wave in waves if not wave.done]}", file=sys.stderr)
            return
        time.sleep(0.2)


def _progress() -> object:
    from django.db.models import Sum

    from curation.runs.models import Run

    return Run.objects.aggregate(Sum("items_done"), Sum("items_failed"))


def _figures(wave: Wave) -> dict[str, Any]:
    """A wave's results, by names that are the same in every wave, and the counts of its runs."""
    from django.db.models import Count, F, Sum

    from curation.duels.models import Duel, Prompt, Verdict
    from curation.exports.models import Export
    from curation.runs.models import OPEN, Call, Item, Run
    from curation.samples.models import Sample
    from tests.exports.exporting import content

    project = _project(wave.slug)
    runs = list(Run.objects.filter(project=project).order_by("id"))
    calls = Call.objects.filter(run__project=project)
    cost = calls.aggregate(n=Sum("cost"))["n"] or Decimal(0)
    place = F("duel__prompt__row_offset")
    marks = list(
        Verdict.objects.filter(duel__project=project).values_list(place, "judge", "order", "parsed", "dimensions")
    )
    files = {}
    for export in Export.objects.filter(project=project, ready=True):
        for file in export.files.exclude(split=""):
            files[file.name] = sorted(content(export, file.name).decode().splitlines())
    samples = Sample.objects.of(project).values_list("duel__prompt__row_offset", "score", "bucket", "status")
    return {
        "runs": [(run.kind, run.state, run.error) for run in runs],
        "failures": list(Item.objects.filter(run__project=project, state="failed").values_list("reason", flat=True)),
        "items": {
            run.kind: dict(Item.objects.filter(run=run).values_list("state").annotate(n=Count("id"))) for run in runs
        },
        "open": Item.objects.filter(run__project=project, state__in=OPEN).count(),
        "miscounted": [
            run.kind
            for run in runs
            if run.items_done != Item.objects.filter(run=run, state="done").count()
            or run.calls != Call.objects.filter(run=run).count()
            or run.cost != (Call.objects.filter(run=run).aggregate(n=Sum("cost"))["n"] or Decimal(0))
            or run.cost_unknown_calls != Call.objects.filter(run=run, cost=None).count()
        ],
        "calls": dict(calls.values_list("status").annotate(n=Count("id"))),
        "answered_twice": calls.filter(status="ok")
        .values("content_hash")
        .annotate(n=Count("id"))
        .filter(n__gt=1)
        .count(),
        "cost": str(cost),
        "rows": {
            "prompts": sorted(Prompt.objects.filter(project=project).values_list("row_offset", flat=True)),
            "duels": Duel.objects.filter(project=project).count(),
            "verdicts": sorted(map(str, marks)),
            "samples": sorted(map(str, samples)),
            "files": {
                name: hashlib.sha256("\n".join(lines).encode()).hexdigest() for name, lines in sorted(files.items())
            },
            "exported": {name: len(lines) for name, lines in sorted(files.items())},
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for what in ("worker", "redis", "postgres"):
        parser.add_argument(what, type=int)
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    with contextlib.suppress(KeyboardInterrupt):
        print(json.dumps(soak(vars(given))))
