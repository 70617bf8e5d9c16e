"""Celery tasks."""

from celery import shared_task

from curation.webhooks.deliver import deliver_due


@shared_task
def deliver() -> None:
    deliver_due()
