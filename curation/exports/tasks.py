"""Celery shells. The work is in `retention.py` and `rounds/start.py`."""

from celery import shared_task

from curation.exports.retention import delete_old_exports
from curation.exports.rounds.start import export_reviewed_rounds


@shared_task
def delete_old() -> None:
    delete_old_exports()


@shared_task
def export_reviewed() -> None:
    export_reviewed_rounds()
