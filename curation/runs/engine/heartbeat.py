"""The heartbeat of one worker's shard: extends its leases and notices that the run or the worker is stopped."""

import logging
import threading
import time

from celery import signals
from django.db import Error, connection

from curation.runs.engine.claim import extend
from curation.runs.models import Run

logger = logging.getLogger(__name__)
EVERY_SECONDS = 2.0
_stopping_since: list[float] = []


@signals.worker_shutting_down.connect
def note_shutdown(**_: object) -> None:
    """Called in the worker's main process, whose threads are the shards of a pool of threads."""
    _stopping_since.append(time.monotonic())


def shutdown_seconds() -> float | None:
    """Return how long this worker has been shutting down; None if it is not."""
    return time.monotonic() - _stopping_since[0] if _stopping_since else None


class Heartbeat:
    """A thread with its own connection, so that neither a busy event loop nor a long query lets leases expire.

    `stopped` becomes true when the run has ended (it was cancelled) or left the stage (it is retried).
    """

    def __init__(self, run: Run, owner: str) -> None:
        self.stopped = False
        self._run_id, self._stage = run.pk, run.stage
        self._owner = owner
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat-{run.pk}", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        try:
            while not self._over.wait(EVERY_SECONDS):
                try:
                    extend(owner=self._owner)
                    self.stopped = not Run.objects.live().filter(pk=self._run_id, stage=self._stage).exists()
                except Error as error:
                    # Either the database is back before the lease expires, or the lease expires: both are safe.
                    logger.warning("heartbeat of run %s: %s", self._run_id, error)
                    connection.close()
        finally:
            connection.close()
