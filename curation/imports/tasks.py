"""Celery shells."""

from celery import shared_task

from curation.imports.sources.sweep import sweep_uploads


@shared_task
def sweep() -> None:
    sweep_uploads()
