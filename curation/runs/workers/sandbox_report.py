"""What the sandboxes of this installation can do: as its workers tell, or as this process finds by trying.

Web and workers may be different machines, of which only the workers' have an engine: what a worker tells counts before
what this process sees.
"""

import threading
import time
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError
from pydantic import BaseModel

from curation.runs.models import WorkerSeen
from curation.runs.workers.presence import workers_alive
from curation.runs.workers.sandbox import NoSandbox, backend, sandbox_folder
from sandbox.choose import BACKENDS, findings_of, works
from sandbox.protocol import Finding

QUEUE = "sandbox"
FRESH_SECONDS = 60.0
PAGE_SECONDS = 3.0


class SandboxReport(BaseModel):
    """`backend` is the one that is used, empty where none works; `place` is the worker, empty for this process."""

    backend: str = ""
    findings: list[Finding] = []
    place: str = ""

    @property
    def works(self) -> bool:
        return bool(self.backend)

    @property
    def detail(self) -> str:
        """One line: what is used, or what is missing and how to get it."""
        if self.works:
            return self.backend
        if not self.findings:
            return "not known yet" if settings.SANDBOX != "none" else "switched off by SANDBOX=none"
        missing = [finding for finding in self.findings if not finding.works]
        return " ".join(f"{one.name}: {one.detail.rstrip('.')}. {one.remedy}".strip() for one in missing)


def try_sandbox() -> SandboxReport:
    """Tries what `SANDBOX` names, each by a session of its own where it gets that far; takes up to a minute."""
    wanted = settings.SANDBOX
    names = {"none": (), "auto": BACKENDS}.get(wanted, (wanted,))
    told: list[Finding] = []
    for name in names:
        found = findings_of(name, folder=sandbox_folder())
        if works(found):
            return SandboxReport(backend=name, findings=list(found))
        told += [Finding(f"{name} {one.name}", one.works, one.detail, one.remedy) for one in found]
    return SandboxReport(findings=told)


def sandbox_reports() -> list[SandboxReport]:
    """What each live sandbox worker tells; where none does, what this process finds, at most a minute old.

    Also where the database is away: that it is, another part says.
    """
    try:
        told = _told()
    except DatabaseError:
        told = []
    return told or [_own.report(PAGE_SECONDS)]


def require_sandbox() -> None:
    """Raises `NoSandbox` where no worker, or without workers not this machine, can run commands in isolation."""
    told = _told()
    if not told:
        backend()
    elif not any(report.works for report in told):
        raise NoSandbox(" ".join(f"{report.place}: {report.detail}" for report in told))


def _told() -> list[SandboxReport]:
    return [_of(worker) for worker in workers_alive() if QUEUE in worker.queues.split(",") and worker.sandbox]


def _of(worker: WorkerSeen) -> SandboxReport:
    return SandboxReport.model_validate({**worker.sandbox, "place": worker.name})


class _Own:
    """The report of this process: made beside the request that wants it, since an engine may take its time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._about: tuple[str, Path] | None = None
        self._last = SandboxReport()
        self._tried = threading.Event()
        self._due = 0.0

    def report(self, seconds: float) -> SandboxReport:
        """The last report; waits at most so long for the first one."""
        if settings.SANDBOX == "none":
            return SandboxReport()
        with self._lock:
            about = (settings.SANDBOX, sandbox_folder())
            if about != self._about:
                self._about, self._last, self._tried, self._due = about, SandboxReport(), threading.Event(), 0.0
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + FRESH_SECONDS
                threading.Thread(target=self._try, args=(about, self._tried), name="sandbox-trial", daemon=True).start()
            tried = self._tried
        tried.wait(seconds)
        return self._last

    def _try(self, about: tuple[str, Path], tried: threading.Event) -> None:
        try:
            found = try_sandbox()
            with self._lock:
                if about == self._about:
                    self._last = found
        finally:
            tried.set()


_own = _Own()
