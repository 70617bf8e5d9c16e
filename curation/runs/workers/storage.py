"""Web and workers must see the same files: each tells which storage it has, by a mark in it."""

import logging
import os
import socket
import time
import uuid
from contextlib import suppress

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from pydantic import BaseModel

from curation.runs.models import WorkerSeen
from curation.web.failures import failure_of, full_disks

logger = logging.getLogger(__name__)
MARK, WATCH_MARK = "storage-mark", ".winnow-mark"
FRESH_SECONDS = 30.0
_last: tuple[float, object, "StorageReport"] | None = None


class StorageReport(BaseModel):
    """`mark` is the same for all processes with the same files. `error` says why they cannot be read or written.
    `watched` is the mark of `WATCH_FOLDER`, empty if there is none or it cannot be used. `clock` is by how many seconds
    the clock of the host is ahead of the database's."""

    mark: str = ""
    files: str = ""
    data: str = ""
    host: str = ""
    error: str = ""
    full: list[str] = []
    watched: str = ""
    clock: float = 0.0

    def differs_from(self, other: "StorageReport") -> bool:
        return bool(self.mark and other.mark and self.mark != other.mark)


def own_storage() -> StorageReport:
    """Return the report of this process, at most `FRESH_SECONDS` old; its disks are looked at each time."""
    global _last  # noqa: PLW0603 - one report per process
    now, where = time.monotonic(), (settings.FILES_URL, settings.MEDIA_ROOT)
    if _last is None or _last[1] != where or now - _last[0] > FRESH_SECONDS or _last[2].error:
        _last = (now, where, _look())
    return _last[2].model_copy(update={"full": [disk.detail for disk in full_disks()]})


def storage_of(worker: WorkerSeen) -> StorageReport:
    return StorageReport.model_validate(worker.storage)


def _look() -> StorageReport:
    own = {"files": settings.FILES_URL, "data": str(settings.WINNOW_DATA), "host": socket.gethostname()}
    report = StorageReport(**own, watched=_watched_mark())
    try:
        return report.model_copy(update={"mark": _mark()})
    except _errors_of_storage() as error:
        failure = failure_of(error)
        logger.warning("files at %s: %r", settings.FILES_URL, error)
        return report.model_copy(update={"error": failure.detail if failure else f"{type(error).__name__}"})


def _mark() -> str:
    """Return the storage's mark. The first process makes it; of two that make it at once, one name wins."""
    if not default_storage.exists(MARK):
        made = default_storage.save(MARK, ContentFile(uuid.uuid4().hex.encode()))
        if made != MARK:
            default_storage.delete(made)
    with default_storage.open(MARK) as file:
        return str(file.read(64).decode())


def _watched_mark() -> str:
    """Return the mark of the watched folder, which the first process makes. Links are not followed: others may write
    to the folder."""
    if settings.WATCH_FOLDER is None:
        return ""
    path = settings.WATCH_FOLDER / WATCH_MARK
    try:
        with suppress(FileExistsError), path.open("x") as file:
            file.write(uuid.uuid4().hex)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            return file.read(32)
    except (OSError, UnicodeDecodeError) as error:
        logger.warning("WATCH_FOLDER: its mark cannot be read or written: %r", error)
        return ""


def _errors_of_storage() -> tuple[type[Exception], ...]:
    """Those of S3 only where files are there: they load 25 MB, from a part that not every installation has."""
    if not settings.FILES_URL.startswith("s3:"):
        return (OSError,)
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return OSError, BotoCoreError, Boto3Error, ClientError
