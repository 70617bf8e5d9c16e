"""Check the components that Winnow needs: database, broker, disk, files, sandbox."""

import os
from pathlib import Path

from django.db import DatabaseError, connection
from pydantic import Field

from curation.runs.workers.broker import check_broker
from curation.runs.workers.presence import workers_alive
from curation.runs.workers.sandbox_report import sandbox_reports
from curation.runs.workers.storage import StorageReport, own_storage, storage_of
from curation.web.database.queries import seconds_ahead
from curation.web.schemas import out

MOST_SKEW = 2.0  # seconds
UNFINISHED = "WINNOW_DEMO_UNFINISHED"


@out
class ComponentOut:
    """`needed` components decide whether the server is ready; `detail` contains no secrets."""

    name: str = Field(examples=["database"])
    ok: bool = Field()
    detail: str = Field(examples=["postgresql"])
    needed: bool = Field(default=True, description="Whether readiness depends on it.")


def check_components() -> list[ComponentOut]:
    own, workers = own_storage(), _storage_of_workers()
    places = [disk(own, workers), files(own, workers), *watched(workers)]
    return [database(), broker(), *places, clocks(workers), sandbox(), *demo()]


def demo() -> list[ComponentOut]:
    """The demo's project, while it is incomplete. The demo names a file, which exists so long and says why."""
    mark = os.environ.get(UNFINISHED, "")
    try:
        return [ComponentOut("demo", False, Path(mark).read_text(encoding="utf-8"))] if mark else []
    except FileNotFoundError:
        return []


def database() -> ComponentOut:
    kind = connection.vendor
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
            migrated = cursor.fetchone() is not None
    except DatabaseError as error:
        return ComponentOut("database", False, f"{kind}: {type(error).__name__}: {str(error).splitlines()[0]}")
    return ComponentOut("database", migrated, kind if migrated else f"{kind}: no migration has been applied")


def broker() -> ComponentOut:
    return ComponentOut("broker", *check_broker())


def disk(own: StorageReport, workers: dict[str, StorageReport]) -> ComponentOut:
    """Whether this process and the workers have room where they write."""
    full = {detail: None for report in [own, *workers.values()] for detail in report.full}
    return ComponentOut("disk", not full, " ".join(full) or "has room")


def files(own: StorageReport, workers: dict[str, StorageReport]) -> ComponentOut:
    """Whether the workers see the files that this process sees."""
    if own.error:
        return ComponentOut("files", False, f"{own.files}: {own.error}")
    wrong = []
    for name, report in workers.items():
        if report.error:
            wrong.append(f"Worker {name} cannot use {report.files}: {report.error}")
        elif report.differs_from(own):
            wrong.append(
                f"Worker {name} on {report.host} has other files than this server: FILES_URL is {report.files} there "
                f"(WINNOW_DATA={report.data}) and {own.files} here (WINNOW_DATA={own.data}, host {own.host}). "
                "Set FILES_URL, or share WINNOW_DATA, so that both have the same."
            )
    return ComponentOut("files", not wrong, " ".join(wrong) or own.files.split("://")[0])


def watched(workers: dict[str, StorageReport]) -> list[ComponentOut]:
    """Whether the workers with a watched folder see the same one: each looks for files in turn."""
    marks = {name: report.watched for name, report in workers.items() if report.watched}
    if not marks:
        return []
    names = ", ".join(f"{name} on {workers[name].host}" for name in marks)
    wrong = f"WATCH_FOLDER is not the same folder for {names}: each takes the files of its own. Share it."
    same = len(set(marks.values())) == 1
    return [ComponentOut("watched folder", same, "the same for all workers" if same else wrong, needed=False)]


def clocks(workers: dict[str, StorageReport]) -> ComponentOut:
    """Whether the hosts' clocks agree with the database's. Leases go by that alone, but logs, limits of models and
    signatures of webhooks do not."""
    try:
        ahead = {"this server": seconds_ahead()} | {f"worker {name}": one.clock for name, one in workers.items()}
    except DatabaseError:
        return ComponentOut("clocks", False, "not known: the database does not answer", needed=False)
    wrong = [
        f"The clock of {name} is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} the database's."
        for name, seconds in ahead.items()
        if abs(seconds) > MOST_SKEW
    ]
    return ComponentOut("clocks", not wrong, " ".join(wrong) or "agree with the database's", needed=False)


def _storage_of_workers() -> dict[str, StorageReport]:
    try:
        return {worker.name: storage_of(worker) for worker in workers_alive() if worker.storage}
    except DatabaseError:
        return {}


def sandbox() -> ComponentOut:
    """The backend that runs commands in isolation. Only stages that run commands need one."""
    reports = sandbox_reports()
    works = next((report for report in reports if report.works), None)
    return ComponentOut("sandbox", works is not None, (works or reports[0]).detail, needed=False)
