"""Celery shells. The work is in `retention.py`."""

from celery import shared_task

from curation.exports.retention import delete_old_exports


@shared_task
def delete_old() -> None:
    delete_old_exports()
