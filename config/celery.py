"""The Celery app. Tasks live in each app's `tasks.py`; queues are `llm`, `sandbox` and `default`."""

import ctypes
import os
import signal
import sys

from celery import Celery
from celery.signals import beat_embedded_init, worker_process_init

from config import embedded_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# LiteLLM would fetch its price map from the internet when it is first imported; the packaged one is meant.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

embedded_broker.register()
app = Celery("winnow")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
_LOADED_BY = os.getpid()  # the worker's parent process; its pool is forked from it


@beat_embedded_init.connect
@worker_process_init.connect
def die_with_the_parent(**_: object) -> None:
    """A pool process whose parent was killed would work on, unseen, until its shard ends, and then wait for ever; an
    embedded beat would ring beside the next one.

    Linux kills it with the parent; elsewhere it gives up when its leases have lapsed.
    """
    if sys.platform != "linux":
        return
    parent_death_signal = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
    ctypes.CDLL(None, use_errno=True).prctl(parent_death_signal, signal.SIGKILL)
    if os.getppid() != _LOADED_BY:  # it died before this was asked for
        os.kill(os.getpid(), signal.SIGKILL)
