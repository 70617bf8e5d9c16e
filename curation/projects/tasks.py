"""Celery shells. The work is in `removal/carry_out.py`."""

from celery import shared_task

from curation.projects.removal.carry_out import carry_out, continue_all


@shared_task
def delete(deletion_id: int) -> None:
    carry_out(deletion_id)


@shared_task
def continue_deletions() -> None:
    continue_all()
