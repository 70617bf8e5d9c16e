"""Check the components that Winnow needs: database, broker, disk, files, sandbox."""

import os
from dataclasses import dataclass
from pathlib import Path

from django.db import DatabaseError, connection

from curation.runs.workers.broker import check_broker
from curation.runs.workers.presence import workers_alive
from curation.runs.workers.sandbox_report import sandbox_reports
from curation.runs.workers.storage import StorageReport, own_storage, storage_of
from curation.web.clock import seconds_ahead

MOST_SKEW = 2.0  # seconds
UNFINISHED = "WINNOW_DEMO_UNFINISHED"


@dataclass(frozen=True, slots=True)
class Component:
    """`needed` components decide whether the server is ready; `detail` contains no secrets."""

    name: str
    ok: bool
    detail: str
    needed: bool = True


def check_components() -> list[Component]:
    own, workers = own_storage(), _storage_of_workers()
    return [
        database(),
        broker(),
        disk(own, workers),
        files(own, workers),
        *watched(workers),
        clocks(workers),
        sandbox(),
        *demo(),
    ]


def demo() -> list[Component]:
    """The demo's project, while it is incomplete. The demo names a file, which exists so long and says why."""
    mark = os.environ.get(UNFINISHED, "")
    try:
        return [Component("demo", False, Path(mark).read_text(encoding="utf-8"))] if mark else []
    except FileNotFoundError:
        return []


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
    state = check_broker()
    return Component("broker", state.ok, state.detail)


def disk(own: StorageReport, workers: dict[str, StorageReport]) -> Component:
    """Whether this process and the workers have room where they write."""
    full = {detail: None for report in [own, *workers.values()] for detail in report.full}
    return Component("disk", not full, " ".join(full) or "has room")


def files(own: StorageReport, workers: dict[str, StorageReport]) -> Component:
    """Whether the workers see the files that this process sees."""
    if own.error:
        return Component("files", False, f"{own.files}: {own.error}")
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
    return Component("files", not wrong, " ".join(wrong) or own.files.split("://")[0])


def watched(workers: dict[str, StorageReport]) -> list[Component]:
    """Whether the workers with a watched folder see the same one: each looks for files in turn."""
    marks = {name: report.watched for name, report in workers.items() if report.watched}
    if not marks:
        return []
    names = ", ".join(f"{name} on {workers[name].host}" for name in marks)
    wrong = f"WATCH_FOLDER is not the same folder for {names}: each takes the files of its own. Share it."
    same = len(set(marks.values())) == 1
    return [Component("watched folder", same, "the same for all workers" if same else wrong, needed=False)]


def clocks(workers: dict[str, StorageReport]) -> Component:
    """Whether the hosts' clocks agree with the database's. Leases go by that alone, but logs, limits of models and
    signatures of webhooks do not."""
    try:
        ahead = {"this server": seconds_ahead()} | {f"worker {name}": one.clock for name, one in workers.items()}
    except DatabaseError:
        return Component("clocks", False, "not known: the database does not answer", needed=False)
    wrong = [
        f"The clock of {name} is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} the database's."
        for name, seconds in ahead.items()
        if abs(seconds) > MOST_SKEW
    ]
    return Component("clocks", not wrong, " ".join(wrong) or "agree with the database's", needed=False)


def _storage_of_workers() -> dict[str, StorageReport]:
    try:
        return {worker.name: storage_of(worker) for worker in workers_alive() if worker.storage}
    except DatabaseError:
        return {}


def sandbox() -> Component:
    """The backend that runs commands in isolation. Only stages that run commands need one."""
    reports = sandbox_reports()
    works = next((report for report in reports if report.works), None)
    return Component("sandbox", works is not None, (works or reports[0]).detail, needed=False)
