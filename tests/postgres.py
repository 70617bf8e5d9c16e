"""A PostgreSQL that belongs to one test, so that the test may empty it or restart it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts import missing
from tests.serving import free_port


class Postgres:
    """The server's process, which does not run as root. `restart` is the command that restarts it at once."""

    def __init__(self) -> None:
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        if not binaries:
            missing("no PostgreSQL in /usr/lib/postgresql, and the one of DATABASE_URL is not ours to restart")
        self._bin = binaries[-1]
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="winnow-soak-"))
        self._as = []
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
            self._as = ["runuser", "-u", "postgres", "--"]
        user = pwd.getpwuid(self._folder.stat().st_uid).pw_name
        self._run("initdb", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
        self._run(*self._control("start"))
        self.url = f"postgresql://{user}@127.0.0.1:{self.port}/postgres"

    def _control(self, *words: str) -> list[str]:
        # The kernel keeps written data when PostgreSQL is killed, so nothing needs fsync.
        options = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories={self._folder} "
        return ["pg_ctl", "--wait", "--log", f"{self._folder}/log", "--options", options + "-c fsync=off", *words]

    def _command(self, program: str, *words: str) -> list[str]:
        return [*self._as, str(self._bin / program), "--pgdata", str(self._folder / "data"), *words]

    def _run(self, *words: str) -> None:
        subprocess.run(self._command(*words), check=True, stdout=subprocess.DEVNULL, cwd=self._folder)

    @property
    def restart(self) -> list[str]:
        return self._command(*self._control("--mode", "immediate", "restart"))

    def stop(self) -> None:
        self._run("pg_ctl", "--mode", "immediate", "stop")
        shutil.rmtree(self._folder)


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop()
