"""The Celery app. Tasks live in each app's `tasks.py`; queues are `llm`, `sandbox` and `default`."""

import os

from celery import Celery

from config import embedded_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# LiteLLM would fetch its price map from the internet when it is first imported; the packaged one is meant.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

embedded_broker.register()
app = Celery("winnow")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
