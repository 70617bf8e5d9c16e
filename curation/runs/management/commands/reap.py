"""`manage.py reap`: one round of the reaper, for installations without Celery beat."""

from django.core.management.base import BaseCommand

from curation.runs.engine.reap import reap_all
from curation.runs.workers.sandbox import reap_sandboxes


class Command(BaseCommand):
    help = (
        "Gives back what silent workers held, moves stuck runs on, rings for runs with waiting items, and removes "
        "sandboxes that nobody works in."
    )

    def handle(self, **options: object) -> None:
        reap_all()
        reap_sandboxes()
