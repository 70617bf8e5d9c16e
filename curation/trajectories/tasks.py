"""Celery shells."""

from celery import shared_task

from curation.trajectories.imported.images import sweep_images


@shared_task
def sweep() -> None:
    sweep_images()
