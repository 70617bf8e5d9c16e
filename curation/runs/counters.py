"""A run's counters: added to in the transaction that ends an item or a call, at most once per transaction."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal

from django.db.models import F

from curation.runs.models import Run

Counted = Mapping[str, int | Decimal]
_Tally = dict[int, dict[str, int | Decimal]]


class _Here(threading.local):
    tally: _Tally | None = None


_here = _Here()


def count(run_id: int, more: Counted) -> None:
    """Adds to the run's counters, now or at the end of `counting_together`. Needs a transaction."""
    if _here.tally is None:
        _write(run_id, more)
    else:
        _add(_here.tally, run_id, more)


@contextmanager
def counting_together() -> Iterator[None]:
    """What is counted inside is written at the end, as one update per run: a group of writes counts by the hundred."""
    _here.tally = tally = _fresh()
    try:
        yield
        for run_id, more in sorted(tally.items()):
            _write(run_id, more)
    finally:
        _here.tally = None


@contextmanager
def counting_if_it_holds() -> Iterator[None]:
    """Part of a group whose counts are dropped when it raises, as its writes are."""
    together = _here.tally
    _here.tally = own = _fresh()
    try:
        yield
        if together is not None:
            for run_id, more in own.items():
                _add(together, run_id, more)
    finally:
        _here.tally = together


def _fresh() -> _Tally:
    return defaultdict(lambda: defaultdict(int))


def _add(tally: _Tally, run_id: int, more: Counted) -> None:
    for name, number in more.items():
        tally[run_id][name] += number


def _write(run_id: int, more: Counted) -> None:
    changes = {name: F(name) + number for name, number in more.items() if number}
    if changes:
        Run.objects.filter(pk=run_id).update(**changes)
