"""`manage.py reap`: one round of the reaper, for installations without Celery beat."""

from django.core.management.base import BaseCommand

from curation.runs.engine.reap import reap_all
from curation.runs.workers.sandbox import reap_sandboxes


class Command(BaseCommand):
    help = (
        "Return the items of dead workers, advance stuck runs, dispatch runs with pending items, and remove "
        "sandboxes that nobody works in."
    )

    def handle(self, **options: object) -> None:
        reap_all()
        reap_sandboxes()
