"""Housekeeping of a worker with sandboxes: remove sandboxes of dead workers, report the backends of its machine.

Each such worker does it in a thread: a Celery task would reach only one machine, and wait behind busy slots.
"""

import logging
import threading

from celery import signals
from celery.worker import WorkController
from django.db import Error, connection

from curation.runs.workers.presence import report_sandbox
from curation.runs.workers.sandbox import reap_sandboxes
from curation.runs.workers.sandbox_report import QUEUES, try_sandbox
from sandbox.errors import SandboxError

logger = logging.getLogger(__name__)
EVERY_SECONDS = 60.0
_over = threading.Event()


@signals.worker_ready.connect
def begin(sender: object, **_: object) -> None:
    controller = getattr(sender, "controller", None)
    if isinstance(controller, WorkController) and not QUEUES.isdisjoint(controller.app.amqp.queues.consume_from):
        _over.clear()
        threading.Thread(target=_clean_up, name="sandboxes", daemon=True).start()


@signals.worker_shutdown.connect
def end(**_: object) -> None:
    _over.set()


def _clean_up() -> None:
    while True:
        clean_up_once()
        if _over.wait(EVERY_SECONDS):
            return


def clean_up_once() -> None:
    """Do one round. The engine or the database may be down for a while: the next round tries again."""
    try:
        count = reap_sandboxes()
        if count:
            logger.warning("%s sandboxes of dead workers were removed", count)
    except (SandboxError, Error) as error:
        logger.warning("sandboxes: %s", error)
    finally:
        # The pool forks from this process; a child must not inherit an open connection.
        connection.close()
    try:
        report_sandbox(try_sandbox().model_dump(mode="json", exclude={"place"}))
    except (SandboxError, OSError) as error:
        logger.warning("sandboxes: %s", error)
