"""A run's counters: added to in the transaction that ends an item or a call, at most once per transaction."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal

from django.db import connection

Counted = Mapping[str, int | Decimal]
_Tally = dict[int, dict[str, int | Decimal]]

COUNTERS = (
    *("items_done", "items_failed", "items_skipped"),
    *("calls", "tokens_in", "tokens_out", "cost", "cost_unknown_calls"),
)
# Written out: it is part of every call, and Django takes longer to build such an update than all the rest takes.
_ADDED = ", ".join(f"{name} = {name} + %s" for name in COUNTERS)
ADD = f"UPDATE runs_run SET {_ADDED} WHERE id = %s"  # noqa: S608 - names of columns


class _Here(threading.local):
    tally: _Tally | None = None


_here = _Here()


def count(run_id: int, more: Counted) -> None:
    """Adds to the run's counters, now or at the end of `counting_together`. Needs a transaction."""
    if _here.tally is None:
        _write(run_id, more)
    else:
        for name, number in more.items():
            _here.tally[run_id][name] += number


@contextmanager
def counting_together() -> Iterator[None]:
    """What is counted inside is written at the end, as one update per run: a group of writes counts by the hundred."""
    tally: _Tally = defaultdict(lambda: defaultdict(int))
    _here.tally = tally
    try:
        yield
        for run_id, more in sorted(tally.items()):
            _write(run_id, more)
    finally:
        _here.tally = None


def _write(run_id: int, more: Counted) -> None:
    if unknown := more.keys() - set(COUNTERS):
        raise KeyError(f"a run does not count {', '.join(sorted(unknown))}")
    if any(more.values()):
        with connection.cursor() as cursor:
            cursor.execute(ADD, [*(more.get(name, 0) for name in COUNTERS), run_id])
