"""Sessions in bubblewrap: one process each, with the supervisor as PID 1 inside."""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from sandbox.bubblewrap.cgroups import remove
from sandbox.bubblewrap.findings import findings_of
from sandbox.bubblewrap.host import Host, find_host
from sandbox.bubblewrap.process import BubblewrapProcess
from sandbox.bubblewrap.records import Records, maker_of, new_name
from sandbox.bubblewrap.template import Template
from sandbox.errors import SandboxFailed, SandboxUnavailable
from sandbox.protocol import BackendFinding, Labels, SandboxSession, SessionLimits, Setup
from sandbox.session import open_session
from sandbox.setup import check_setup, tmpfs_options

logger = logging.getLogger(__name__)


class BubblewrapBackend:
    name = "bubblewrap"

    def __init__(self, folder: Path, host: Host) -> None:
        self._folder = folder
        self._host = host
        sessions = folder / "bubblewrap"
        sessions.mkdir(parents=True, exist_ok=True)
        self._records = Records(sessions)
        self._starting = threading.Lock()
        self._running: Template | None = None

    def session(self, setup: Setup) -> SandboxSession:
        check_setup(setup)
        name, limits = new_name(), setup.limits
        bounded = set(self._host.cgroups.parents) if self._host.cgroups else set()
        process = self._start(name, limits)
        session = open_session(
            process,
            setup,
            nproc=0 if "pids" in bounded or not self._host.counts else limits.pids,
            address_space=0 if "memory" in bounded else limits.memory,
        )
        try:
            self._records.write(name, process.pid, setup.labels)
        except OSError as error:
            session.close()
            raise SandboxFailed(f"The sandbox could not be recorded in {self._folder}: {error}") from None
        return session

    def findings(self) -> Sequence[BackendFinding]:
        return findings_of(self, self._host)

    def reap(self, is_alive: Callable[[Labels], bool]) -> int:
        """A session that does not end at once stays, with its record, for the next call."""
        count = 0
        for record in list(self._records.all()):
            if not record.is_owned(is_alive):
                record.kill()
                with suppress(SandboxFailed):
                    self._remove(record.name)
                    count += 1
        # A worker that was killed in between left a control group without a record.
        for name in self._host.cgroups.names() if self._host.cgroups else ():
            maker = maker_of(name)
            if maker is not None and not maker.is_alive():
                with suppress(SandboxFailed):
                    remove(self._folders(name), patience=0)
        return count

    def _start(self, name: str, limits: SessionLimits) -> BubblewrapProcess:
        cgroups = self._host.cgroups
        template = self._template()
        groups = cgroups.make(name, limits) if cgroups else ()
        entrances = [os.open(path, os.O_WRONLY) for path in (cgroups.entrances(groups) if cgroups else ())]
        counters = [os.open(path, os.O_RDONLY) for path in (cgroups.counters(name) if cgroups else ())]
        try:
            return BubblewrapProcess(
                template,
                tmpfs_options(limits),
                entrances=entrances,
                counters=counters,
                is_exhausted=lambda: cgroups is not None and cgroups.is_exhausted(name),
                on_end=lambda: self._gone(name),
            )
        finally:
            for number in (*entrances, *counters):
                os.close(number)

    def _template(self) -> Template:
        with self._starting:
            if self._running is None or not self._running.is_alive:
                self._running = Template(self._host)
            return self._running

    def _gone(self, name: str) -> None:
        """A session's results count even if something of it is left for the reaper."""
        try:
            self._remove(name)
        except SandboxFailed as failure:
            logger.warning("sandbox %s: %s", name, failure)

    def _remove(self, name: str) -> None:
        remove(self._folders(name))
        self._records.forget(name)

    def _folders(self, name: str) -> Sequence[Path]:
        return self._host.cgroups.folders(name) if self._host.cgroups else ()


def bubblewrap_backend(folder: Path) -> BubblewrapBackend:
    """Return the backend without trying it. Raises `SandboxUnavailable` without bwrap."""
    return BubblewrapBackend(folder, find_host(folder))


def find(folder: Path) -> BubblewrapBackend:
    """Return the backend if a session works in it; else raise `SandboxUnavailable` with what to do."""
    backend = bubblewrap_backend(folder)
    try:
        with backend.session(Setup()) as session:
            answer = session.exec("echo works").output
    except SandboxFailed as failure:
        raise SandboxUnavailable(f"bubblewrap is installed, but a session cannot be opened. {failure}") from None
    if answer != "works\n":
        raise SandboxUnavailable(f"bubblewrap is installed, but a session answers {answer[:200]!r}.")
    return backend
