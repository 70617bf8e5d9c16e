"""Check the components that Winnow needs: database, broker, sandbox."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection
from kombu.exceptions import KombuError, OperationalError
from redis import Redis
from redis.exceptions import RedisError

from curation.runs.workers.sandbox_report import sandbox_reports

SECONDS = 2


@dataclass(frozen=True, slots=True)
class Component:
    """`needed` components decide whether the server is ready; `detail` contains no secrets."""

    name: str
    ok: bool
    detail: str
    needed: bool = True


def check_components() -> list[Component]:
    return [database(), broker(), sandbox()]


def database() -> Component:
    kind = connection.vendor
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
            migrated = cursor.fetchone() is not None
    except DatabaseError as error:
        return Component("database", False, f"{kind}: {type(error).__name__}: {str(error).splitlines()[0]}")
    return Component("database", migrated, kind if migrated else f"{kind}: no migration has been applied")


def broker() -> Component:
    """Connect without sending anything. The embedded broker is a folder, which must be writable."""
    scheme = urlsplit(settings.CELERY_BROKER_URL).scheme
    if scheme == "filesystem":
        folder = Path(str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["data_folder_out"]))
        ok = folder.is_dir() and os.access(folder, os.W_OK)
        return Component("broker", ok, "embedded" if ok else "embedded: its folder cannot be written")
    try:
        if scheme.startswith("redis"):  # kombu would wait for ever where a connection is accepted and never answered
            Redis.from_url(settings.CELERY_BROKER_URL, socket_connect_timeout=SECONDS, socket_timeout=SECONDS).ping()
        else:
            with current_app.connection_for_write(connect_timeout=SECONDS) as found:
                found.ensure_connection(max_retries=1, timeout=SECONDS, interval_start=0)
    except (KombuError, OperationalError, RedisError, OSError) as error:
        # The text of the error may contain the URL and with it a password.
        return Component("broker", False, f"{scheme}: {type(error).__name__}, no connection within {SECONDS} s")
    return Component("broker", True, scheme)


def sandbox() -> Component:
    """The backend that runs commands in isolation. Only stages that run commands need one."""
    reports = sandbox_reports()
    works = next((report for report in reports if report.works), None)
    return Component("sandbox", works is not None, (works or reports[0]).detail, needed=False)
