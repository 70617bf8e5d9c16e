"""Check the components that Winnow needs: database, broker, disk, files, sandbox."""

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

from curation.runs.workers.presence import workers_alive
from curation.runs.workers.sandbox_report import sandbox_reports
from curation.runs.workers.storage import StorageReport, own_storage, storage_of

SECONDS = 2


@dataclass(frozen=True, slots=True)
class Component:
    """`needed` components decide whether the server is ready; `detail` contains no secrets."""

    name: str
    ok: bool
    detail: str
    needed: bool = True


def check_components() -> list[Component]:
    return [database(), broker(), disk(), files(), sandbox()]


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


def disk() -> Component:
    """Whether this process and the workers have room where they write."""
    full = {detail: None for report in [own_storage(), *_of_workers().values()] for detail in report.full}
    return Component("disk", not full, " ".join(full) or "has room")


def files() -> Component:
    """Whether the workers see the files that this process sees."""
    own = own_storage()
    if own.error:
        return Component("files", False, f"{own.files}: {own.error}")
    wrong = []
    for name, report in _of_workers().items():
        if report.error:
            wrong.append(f"Worker {name} cannot use {report.files}: {report.error}")
        elif report.differs_from(own):
            wrong.append(
                f"Worker {name} on {report.host} has other files than this server: FILES_URL is {report.files} there "
                f"(WINNOW_DATA={report.data}) and {own.files} here (WINNOW_DATA={own.data}, host {own.host}). "
                "Set FILES_URL, or share WINNOW_DATA, so that both have the same."
            )
    return Component("files", not wrong, " ".join(wrong) or own.files.split("://")[0])


def _of_workers() -> dict[str, StorageReport]:
    try:
        return {worker.name: storage_of(worker) for worker in workers_alive() if worker.storage}
    except DatabaseError:
        return {}


def sandbox() -> Component:
    """The backend that runs commands in isolation. Only stages that run commands need one."""
    reports = sandbox_reports()
    works = next((report for report in reports if report.works), None)
    return Component("sandbox", works is not None, (works or reports[0]).detail, needed=False)
