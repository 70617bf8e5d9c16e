"""Celery shells. The work is in `decisions/findings.py`."""

from celery import shared_task

from curation.review.decisions.findings import scan_undecided


@shared_task
def scan() -> None:
    scan_undecided()
