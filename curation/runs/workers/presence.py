"""Presence: each worker tells the database that it lives, on any broker, so that pages can say who works."""

import logging
import threading
from datetime import timedelta

from celery import signals
from celery.worker import WorkController
from django.db import Error, connection
from django.utils import timezone

from curation.runs.models import WorkerSeen

logger = logging.getLogger(__name__)
EVERY_SECONDS = 5.0
SILENT_AFTER = timedelta(seconds=20)
FORGOTTEN_AFTER = timedelta(days=1)
_over = threading.Event()
_sandbox: dict[str, object] = {}


def tell_of_sandbox(report: dict[str, object]) -> None:
    """From now on this worker tells that of its machine's sandbox (`curation.runs.workers.sandbox_report`)."""
    _sandbox.update(report)


def workers_alive() -> list[WorkerSeen]:
    """The workers that were heard of within `SILENT_AFTER`."""
    return list(WorkerSeen.objects.filter(seen_at__gt=timezone.now() - SILENT_AFTER))


@signals.worker_ready.connect
def begin(sender: object, **_: object) -> None:
    """Starts the thread that tells of this worker; the embedded broker has no remote control to ask it by."""
    controller = getattr(sender, "controller", None)
    if not isinstance(controller, WorkController):
        return
    queues = ",".join(sorted(str(name) for name in controller.app.amqp.queues.consume_from))
    slots = int(getattr(controller, "concurrency", 1) or 1)
    name = str(getattr(controller, "hostname", "worker"))
    _over.clear()
    threading.Thread(target=_tell, args=(name, queues, slots), name="presence", daemon=True).start()


@signals.worker_shutdown.connect
def end(**_: object) -> None:
    _over.set()


def _tell(name: str, queues: str, slots: int) -> None:
    started = timezone.now()
    values = {"queues": queues, "slots": slots, "started_at": started}
    try:
        while True:
            try:
                WorkerSeen.objects.update_or_create(
                    name=name, defaults={**values, "sandbox": _sandbox, "seen_at": timezone.now()}
                )
                WorkerSeen.objects.filter(seen_at__lt=timezone.now() - FORGOTTEN_AFTER).delete()
            except Error as error:
                logger.warning("presence: %s", error)
            # Closed in between: the pool forks from this process, and a child must not inherit an open connection.
            connection.close()
            if _over.wait(EVERY_SECONDS):
                return
    finally:
        connection.close()
