"""Run web and worker as child processes: start both, restart one that dies, stop both."""

import signal
import subprocess
import sys
import time
import types
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

STARTS_WITHIN, STOPS_WITHIN = 120.0, 20.0
COMMANDS = {
    "web": ["gunicorn", "config.wsgi"],
    "worker": [
        *("celery", "--app", "config", "worker", "--beat", "--queues", "llm,sandbox,default", "--concurrency", "2"),
        *("--loglevel", "INFO", "--without-mingle", "--without-gossip"),
    ],
}


class StartFailed(Exception):
    """A child did not start; the message ends with the end of its log."""


class Supervisor:
    """Runs until SIGTERM, SIGINT or SIGHUP. The output of the children goes to `logs/` in the data folder."""

    def __init__(self) -> None:
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = False
        self._logs = settings.WINNOW_DATA / "logs"
        self._logs.mkdir(exist_ok=True)

    def run(self, when_ready: Callable[[], None]) -> None:
        """Start the children, call `when_ready` once the site responds, and return after both have stopped."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        try:
            for name in COMMANDS:
                self._start(name)
            self._wait_until_ready()
            if not self._stopping:
                when_ready()
            while not self._stopping:
                self._restart_dead()
                time.sleep(0.5)
        finally:
            self._stop_all()

    def _stop(self, number: int, frame: types.FrameType | None) -> None:
        self._stopping = True

    def _start(self, name: str) -> None:
        with self._log(name).open("ab") as log:
            # In a session of its own, so that Ctrl+C reaches only this process, which then stops the children.
            self._children[name] = subprocess.Popen(  # noqa: S603 - our own commands
                [sys.executable, "-m", *COMMANDS[name]],
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _restart_dead(self) -> None:
        for name, child in list(self._children.items()):
            if child.poll() is not None:
                with self._log(name).open("a") as log:
                    log.write(f"--- exited with status {child.returncode}, restarted\n")
                self._start(name)
                time.sleep(1.0)  # so that a child that dies at once is not restarted in a busy loop

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + STARTS_WITHIN
        while not self._stopping and not _responds():
            dead = next((name for name, child in self._children.items() if child.poll() is not None), None)
            if dead or time.monotonic() > until:
                name = dead or "web"
                tail = self._log(name).read_text(errors="replace")[-1500:]
                raise StartFailed(f"{name} did not start ({self._log(name)}):\n{tail}")
            time.sleep(0.2)

    def _stop_all(self) -> None:
        running = [child for child in self._children.values() if child.poll() is None]
        for child in running:
            child.terminate()
        until = time.monotonic() + STOPS_WITHIN
        for child in running:
            try:
                child.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _log(self, name: str) -> Path:
        path: Path = self._logs / f"{name}.log"
        return path


def _responds() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{settings.PORT}/api/v1/health", timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False
