"""The roof: settings, URLs, the one NinjaAPI and the Celery app. It may import everything below."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
