import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.celery import app
from config.telemetry import start_tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Before the middleware is loaded, to which tracing adds.
start_tracing("winnow-web")
application = get_wsgi_application()
# Django would load the pages with the first request, in each process again.
get_resolver().url_patterns  # noqa: B018
# Celery's tracing ends the span of a message only if it knows the task.
app.loader.import_default_modules()
