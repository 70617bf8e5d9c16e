"""Failures of the machine that a person can do something about: a full disk, a database that another process blocks.

They arrive as errors of many libraries. `failure_of` names them, for pages, REST, runs and the command line.
"""

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import DataError, Error, IntegrityError, OperationalError, ProgrammingError, connection

from curation.web.problems import Conflict, Invalid, Problem, Unavailable

logger = logging.getLogger(__name__)
# Errors of a database or its driver for a value that no column stores, if no earlier check refused it.
UNSTORABLE = (DataError, OverflowError, UnicodeEncodeError)
FOREIGN_KEY_VIOLATION = "23503"
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
# How the errors of databases say it; they have no `errno`.
FULL_TEXTS = ("database or disk is full", "No space left on device", "could not extend file", "Disk quota exceeded")
DATABASES = ("duckdb", "_duckdb", "psycopg", "sqlite3")
LEAST_FREE = 4 * 1024 * 1024
LEAST_INODES = 16
RETRY_SECONDS = 10


class DiskFull(Unavailable):
    code, title = "disk_full", "The disk is full"

    def __init__(self, where: str) -> None:
        super().__init__(f"The disk is full: {where}. Free space there, then try again.")


class DatabaseBusy(Unavailable):
    code, title = "database_busy", "The database is busy"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, retry_after=RETRY_SECONDS)


def problem_of(error: Exception) -> Problem | None:
    """Return the problem behind an error of the database or the machine, or None for an error of the program."""
    if isinstance(error, UNSTORABLE):
        logger.warning("a value cannot be stored", exc_info=error)
        return Invalid("A number or text in the request is too large, or not text.", code="unstorable")
    if isinstance(error, IntegrityError) and _is_of_deleted_row(error):
        logger.warning("a row is gone, or needed", exc_info=error)
        said = "Somebody has deleted, or begun to use, an object of this change meanwhile. Read it again."
        return Conflict(said, code="changed_meanwhile")
    return failure_of(error)


def failure_of(error: BaseException) -> Unavailable | None:
    """Return the failure of the machine behind an error, or None. Causes are searched too: libraries wrap errors."""
    for one in _chain(error):
        if isinstance(one, Unavailable):
            return one
        if _is_full(one):
            return DiskFull(_where(one))
        if isinstance(one, OperationalError) and "database is locked" in str(one):
            return DatabaseBusy(
                "Another process has been writing to the database for too long, so nothing was saved. "
                f"Try again in {RETRY_SECONDS} s."
            )
    return None


def explain(error: OSError | Error) -> str | None:
    """Return the message of a command line in place of a traceback, or None if a person cannot mend the error."""
    if (failure := failure_of(error)) is not None:
        return failure.detail
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else None
    if isinstance(error, OperationalError) or (isinstance(error, ProgrammingError) and _has_no_tables()):
        return f"The database cannot be used: {str(error).strip()}. `winnow serve` or `manage.py migrate` prepares it."
    return None


def full_disks() -> list[DiskFull]:
    """Return the folders of this process that have no room left, each as the problem that a write will meet."""
    return [DiskFull(_room(folder)) for folder in data_folders() if _has_no_room(folder)]


def data_folders() -> list[Path]:
    """Return the folders that Winnow writes to: its data, files, and SQLite's database."""
    folders = [Path(settings.WINNOW_DATA)]
    if settings.MEDIA_ROOT:
        folders.append(Path(settings.MEDIA_ROOT))
    if connection.vendor == "sqlite":
        folders.append(_database_folder())
    return list(dict.fromkeys(folders))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL_DISK
    if type(error).__module__.partition(".")[0] not in DATABASES:
        return False
    if any(text in str(error) for text in FULL_TEXTS):
        return True
    # SQLite cannot always tell why it could not write.
    return "disk I/O error" in str(error) and _has_no_room(_database_folder())


def _is_of_deleted_row(error: IntegrityError) -> bool:
    return getattr(error.__cause__, "sqlstate", "") == FOREIGN_KEY_VIOLATION or "FOREIGN KEY" in str(error)


def _has_no_tables() -> bool:
    """PostgreSQL reports a missing table as an error of the program."""
    with connection.cursor() as cursor:
        return "django_migrations" not in connection.introspection.table_names(cursor)


def _where(error: BaseException) -> str:
    module = type(error).__module__
    if module.startswith("sqlite3"):
        return _room(_database_folder())
    if module.startswith("psycopg"):
        return "on the server of the database"
    named = error.filename if isinstance(error, OSError) else None
    if isinstance(named, str) and Path(named).is_absolute():
        return _room(Path(named).parent)
    full = [folder for folder in data_folders() if _has_no_room(folder)]
    return _room((full or data_folders())[0])


def _room(folder: Path) -> str:
    folder = _existing(folder)
    return f"{folder}, {shutil.disk_usage(folder).free / 1024 / 1024:.1f} MB free"


def _has_no_room(folder: Path) -> bool:
    found = os.statvfs(_existing(folder))
    no_inodes = found.f_files > 0 and found.f_favail < LEAST_INODES
    return found.f_bavail * found.f_frsize < LEAST_FREE or no_inodes


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _database_folder() -> Path:
    return Path(str(connection.settings_dict["NAME"])).parent
