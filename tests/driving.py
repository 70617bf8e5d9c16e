"""A run as a worker drives it."""

from curation.runs.engine.worker import drive
from curation.runs.models import LIVE, Run


def end(run: Run) -> Run:
    """Drive a run shard by shard until it has ended."""
    for _ in range(20):
        drive(run.pk)
        run.refresh_from_db()
        if run.state not in LIVE:
            return run
    raise AssertionError(f"run {run.pk} is {run.state} in stage {run.stage}")
