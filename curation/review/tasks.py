"""Celery shells. The work is in `decisions/findings.py` and `guarantees/carry_out.py`."""

from celery import shared_task

from curation.review.decisions.findings import scan_undecided
from curation.review.guarantees.carry_out import continue_all


@shared_task
def scan() -> None:
    scan_undecided()


@shared_task
def carry_out_guarantees() -> None:
    continue_all()
