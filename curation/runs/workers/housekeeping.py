"""A worker of the queue `sandbox` tends to its machine: removes sandboxes of the dead, tells what works.

In each such worker and not by beat: a task would reach one of many machines, and wait behind busy slots.
"""

import logging
import threading

from celery import signals
from celery.worker import WorkController
from django.db import Error, connection

from curation.runs.workers.presence import tell_of_sandbox
from curation.runs.workers.sandbox import reap_sandboxes
from curation.runs.workers.sandbox_report import QUEUE, try_sandbox
from sandbox.errors import SandboxError

logger = logging.getLogger(__name__)
EVERY_SECONDS = 60.0
_over = threading.Event()


@signals.worker_ready.connect
def begin(sender: object, **_: object) -> None:
    controller = getattr(sender, "controller", None)
    if isinstance(controller, WorkController) and QUEUE in controller.app.amqp.queues.consume_from:
        _over.clear()
        threading.Thread(target=_tend, name="sandboxes", daemon=True).start()


@signals.worker_shutdown.connect
def end(**_: object) -> None:
    _over.set()


def _tend() -> None:
    while True:
        tend_once()
        if _over.wait(EVERY_SECONDS):
            return


def tend_once() -> None:
    """One round. The engine may be away for a while, and so may the database: the next round comes."""
    try:
        count = reap_sandboxes()
        if count:
            logger.warning("%s sandboxes of dead workers were removed", count)
    except (SandboxError, Error) as error:
        logger.warning("sandboxes: %s", error)
    finally:
        # Closed in between: the pool forks from this process, and a child must not inherit an open connection.
        connection.close()
    try:
        tell_of_sandbox(try_sandbox().model_dump(mode="json", exclude={"place"}))
    except (SandboxError, OSError) as error:
        logger.warning("sandboxes: %s", error)
