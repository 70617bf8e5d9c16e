"""A run's counters, updated in the transaction that ends an item or a call, at most once per transaction."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal

from django.db.models import F

from curation.runs.models import Run

Counted = Mapping[str, int | Decimal]
_Tally = dict[int, dict[str, int | Decimal]]


class _Local(threading.local):
    tally: _Tally | None = None


_local = _Local()


def count(run_id: int, more: Counted) -> None:
    """Add to the run's counters, now or at the end of `counting_together`. Needs a transaction."""
    if _local.tally is None:
        _write(run_id, more)
    else:
        for name, number in more.items():
            _local.tally[run_id][name] += number


@contextmanager
def counting_together() -> Iterator[None]:
    """Write all counts made inside as one update per run: a group of writes makes hundreds."""
    tally: _Tally = defaultdict(lambda: defaultdict(int))
    _local.tally = tally
    try:
        yield
        for run_id, more in sorted(tally.items()):
            _write(run_id, more)
    finally:
        _local.tally = None


def _write(run_id: int, more: Counted) -> None:
    if changes := {name: F(name) + number for name, number in more.items() if number}:
        Run.objects.filter(pk=run_id).update(**changes)
