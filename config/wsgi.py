"""The WSGI entry for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
# Django would load the pages with the first request, in each process again.
get_resolver().url_patterns  # noqa: B018
