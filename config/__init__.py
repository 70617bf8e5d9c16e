"""Settings, URLs, the NinjaAPI and the Celery app. It may import everything."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
