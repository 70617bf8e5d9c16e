"""The Celery app. Tasks are in each app's `tasks.py`; queues are `llm`, `sandbox` and `default`."""

import os

from celery import Celery
from celery.signals import beat_embedded_init, worker_process_init

from config import embedded_broker
from curation.runs.workers.parent import die_with

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Use LiteLLM's packaged price map instead of fetching one from the internet at import.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

embedded_broker.register()
app = Celery("winnow")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
_LOADED_BY = os.getpid()  # the worker's parent process; its pool is forked from it


@beat_embedded_init.connect
@worker_process_init.connect
def die_with_the_worker(**_: object) -> None:
    """End a pool process or embedded beat whose worker was killed.

    Without this a pool process would work until its shard ends and then wait forever, and an old beat would run beside
    a new one.
    """
    die_with(_LOADED_BY)
