"""Presence: each worker reports to the database, with any broker, so that pages can list the workers."""

import logging
import threading
from datetime import timedelta

from celery import signals
from celery.worker import WorkController
from django.db import Error, connection
from django.db.models.functions import Now
from django.utils import timezone

from curation.runs.models import WorkerSeen
from curation.runs.workers.storage import own_storage
from curation.web.database.queries import database_now, seconds_ahead

logger = logging.getLogger(__name__)
EVERY_SECONDS = 5.0
SILENT_AFTER = timedelta(seconds=20)
FORGOTTEN_AFTER = timedelta(days=1)
_over = threading.Event()
_sandbox: dict[str, object] = {}


def report_sandbox(report: dict[str, object]) -> None:
    _sandbox.update(report)


def workers_alive() -> list[WorkerSeen]:
    """Return the workers that reported within `SILENT_AFTER`."""
    return list(WorkerSeen.objects.filter(seen_at__gt=database_now() - SILENT_AFTER))


@signals.worker_ready.connect
def begin(sender: object, **_: object) -> None:
    """Start the thread that reports; the embedded broker has no remote control to ask a worker by."""
    controller = getattr(sender, "controller", None)
    if not isinstance(controller, WorkController):
        return
    queues = ",".join(sorted(str(name) for name in controller.app.amqp.queues.consume_from))
    slots = int(getattr(controller, "concurrency", 1) or 1)
    name = str(getattr(controller, "hostname", "worker"))
    _over.clear()
    threading.Thread(target=_report, args=(name, queues, slots), name="presence", daemon=True).start()


@signals.worker_shutdown.connect
def end(**_: object) -> None:
    _over.set()


def _report(name: str, queues: str, slots: int) -> None:
    started = timezone.now()
    values = {"queues": queues, "slots": slots, "started_at": started}
    try:
        while True:
            try:
                storage = own_storage().model_copy(update={"clock": seconds_ahead()})
                told = {**values, "sandbox": _sandbox, "storage": storage.model_dump()}
                WorkerSeen.objects.update_or_create(name=name, defaults={**told, "seen_at": Now()})
                WorkerSeen.objects.filter(seen_at__lt=database_now() - FORGOTTEN_AFTER).delete()
            except Error as error:
                logger.warning("presence: %s", error)
            # The pool forks from this process; a child must not inherit an open connection.
            connection.close()
            if _over.wait(EVERY_SECONDS):
                return
    finally:
        connection.close()
