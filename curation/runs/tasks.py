"""Celery shells. The work is in `engine/worker.py`, `engine/reap.py` and `calls/move.py`."""

from celery import shared_task

from curation.runs.calls.move import move_old_rows
from curation.runs.engine.reap import reap_all
from curation.runs.engine.worker import drive
from curation.web.http.idempotency import delete_expired


@shared_task
def work(run_id: int, dispatched: str = "") -> None:
    drive(run_id, dispatched)


@shared_task
def reap() -> None:
    reap_all()
    delete_expired()


@shared_task
def move_rows() -> None:
    move_old_rows()
