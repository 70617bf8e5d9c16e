"""Celery shells. What they do is in `drive` and `reap`."""

from celery import shared_task

from curation.runs.drive import drive
from curation.runs.reap import reap_all


@shared_task
def work(run_id: int, rung: str = "") -> None:
    drive(run_id, rung)


@shared_task
def reap() -> None:
    reap_all()
