"""Follow a run from a terminal: a progress bar per stage, the log as it grows, the same figures as the page."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import connection
from tqdm import tqdm

from curation.runs.engine.reap import reap_all
from curation.runs.engine.worker import drive
from curation.runs.models import LIVE, Run, RunEvent
from curation.runs.pages.progress import progress_of
from curation.runs.pages.waiting import waits_of
from curation.web.text.figures import money

EVERY_SECONDS = 0.5
Say = Callable[[str], None]


def follow(run: Run, say: Say, *, inline: bool = False, timeout: float | None = None) -> Run:
    """Return the run when it has ended, or after `timeout` seconds. `inline` also does its work in this process."""
    until = time.monotonic() + timeout if timeout is not None else None
    seen, said = 0, set[tuple[str, str | None]]()
    with Bars() as bars, working(run.pk) if inline else nullcontext():
        while True:
            run.refresh_from_db()
            for event in RunEvent.objects.filter(run=run, id__gt=seen).order_by("id"):
                seen = event.pk
                say(event.message)
            for wait in waits_of(run):
                if (wait.reason, wait.endpoint) not in said:
                    said.add((wait.reason, wait.endpoint))
                    say(wait.message)
            bars.show(run)
            if run.state not in LIVE or (until is not None and time.monotonic() > until):
                return run
            time.sleep(EVERY_SECONDS)


@contextmanager
def working(run_id: int) -> Iterator[None]:
    """Work on this one run in a thread. If the block ends early, other workers continue with its items."""
    over = threading.Event()

    def work() -> None:
        try:
            while not over.is_set() and Run.objects.live().filter(pk=run_id).exists():
                drive(run_id)
                reap_all()
                over.wait(EVERY_SECONDS / 2)
        finally:
            connection.close()

    thread = threading.Thread(target=work, name=f"inline-{run_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        if not Run.objects.live().filter(pk=run_id).exists():
            thread.join()


class Bars:
    """One progress bar per stage; finished bars stay on the screen."""

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None
        self._stage = ""

    def __enter__(self) -> "Bars":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, run: Run) -> None:
        current = progress_of(run).current
        if current is None:
            return
        bar = self._bar
        if bar is None or current.name != self._stage:
            if bar is not None:
                bar.close()
            bar = tqdm(total=current.total, desc=current.name, unit="item")
            self._bar, self._stage = bar, current.name
        bar.total, bar.n = current.total, current.ended
        bar.set_postfix({"failed": current.failed, "cost": money(run.cost)})
