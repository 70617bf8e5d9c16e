"""Run web and workers as child processes: start them, restart one that dies, stop them.

`manage.py demo` and `manage.py serve` become this program after they have prepared the database. It imports no Django,
which would stay in memory.
"""

import fcntl
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, TextIO

from curation.runs.workers.parent import die_with

ROOT = Path(__file__).resolve().parents[3]
GREETING = "WINNOW_DEMO_GREETING"
STARTS_WITHIN, STOPS_WITHIN = 120.0, 20.0
WORKER = (
    *("celery", "--app", "config", "--quiet", "worker", "--pool", "threads"),
    *("--without-mingle", "--without-gossip"),
)
COMMANDS = {
    "web": ["gunicorn", "config.wsgi"],
    # Calls of models that do not answer may take all slots of the first worker, and none of the second.
    "models": [*WORKER, "--queues", "llm,rollout", "--concurrency", "32", "--hostname", "models@%h"],
    "worker": [*WORKER, "--queues", "default,sandbox", "--concurrency", "2", "--beat"],
}


class StartFailed(Exception):
    """It cannot start; the message says what to do or ends with a child's log."""


def require_port(host: str, port: int) -> None:
    """Raise `StartFailed` if the port cannot be used; name the next free one."""
    error = _refusal(host, port)
    if error is None:
        return
    if isinstance(error, PermissionError):
        raise StartFailed(
            f"Port {port} is not allowed for this user. Choose one above 1023: {demo_command('PORT=8000')}"
        )
    free = next((other for other in range(port + 1, 65536) if _refusal(host, other) is None), None)
    offer = f" Start with PORT={free}: {demo_command(f'PORT={free}')}" if free else ""
    raise StartFailed(f"Port {port} is in use.{offer}")


def demo_command(setting: str) -> str:
    """Return what starts the demo with a setting: in a clone `make`, where Winnow is installed its own command."""
    return f"make demo {setting}" if (ROOT / "Makefile").exists() else f"{setting} winnow demo"


def _refusal(host: str, port: int) -> OSError | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error
    return None


class Supervisor:
    """Runs until SIGTERM, SIGINT or SIGHUP. The children write to files in `logs`, or without it where this one writes.

    The children die with this process, even if it is killed. Their health answer contains `instance`, so that another
    server on the port is not taken for them.
    """

    def __init__(self, data: Path, host: str, port: int, logs: Path | None) -> None:
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = False
        self._host, self._port = host, port
        self._instance = secrets.token_hex(16)
        self._environment: dict[str, str] = os.environ | {
            "WINNOW_DATA": str(data),
            "WINNOW_INSTANCE": self._instance,
            # The threads of a worker share two heaps instead of one each: 15 MB less for each worker.
            "MALLOC_ARENA_MAX": "2",
        }
        self._logs = logs
        if logs is not None:
            logs.mkdir(exist_ok=True)

    def run(self, greeting: str) -> None:
        """Start the children, print the greeting once the site responds, and return after they have stopped."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        try:
            for name in COMMANDS:
                self._start(name)
            self._wait_until_ready()
            if greeting and not self._stopping:
                print(greeting, flush=True)
            while not self._stopping:
                self._restart_dead()
                time.sleep(0.5)
        finally:
            self._stop_all()

    def _stop(self, number: int, frame: types.FrameType | None) -> None:
        self._stopping = True

    def _start(self, name: str) -> None:
        with self._log(name) as log:
            # In a session of its own, so that Ctrl+C reaches only this process, which then stops the children.
            self._children[name] = subprocess.Popen(  # noqa: S603 - our own commands
                [sys.executable, "-m", *COMMANDS[name]],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - this process has one thread
            )

    def _restart_dead(self) -> None:
        for name, child in list(self._children.items()):
            if child.poll() is not None:
                self._report(name, f"exited with status {child.returncode}, restarted")
                self._start(name)
                time.sleep(1.0)  # so that a child that dies at once is not restarted in a busy loop

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + STARTS_WITHIN
        while not self._stopping and not self._responds():
            dead = next((name for name, child in self._children.items() if child.poll() is not None), None)
            if dead or time.monotonic() > until:
                if dead == "web":
                    require_port(self._host, self._port)  # another server may have taken it meanwhile
                raise StartFailed(f"{dead or 'web'} did not start{self._end_of_log(dead or 'web')}")
            time.sleep(0.2)

    def _responds(self) -> bool:
        # Not by urllib, which would ask a proxy of the environment.
        connection = http.client.HTTPConnection(self._host, self._port, timeout=2)
        try:
            connection.request("GET", "/api/v1/health", headers={"Host": _own_name()})
            answer = json.loads(connection.getresponse().read(10_000))
        except (http.client.HTTPException, OSError, ValueError):
            return False
        finally:
            connection.close()
        return isinstance(answer, dict) and answer.get("instance") == self._instance

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

    @contextmanager
    def _log(self, name: str) -> Iterator[BinaryIO | None]:
        if self._logs is None:
            yield None
        else:
            with (self._logs / f"{name}.log").open("ab") as log:
                yield log

    def _report(self, name: str, happened: str) -> None:
        with self._log(name) as log:
            if log is not None:
                log.write(f"--- {happened}\n".encode())
            elif os.environ.get("LOG_FORMAT") == "json":
                print(json.dumps({"level": "WARNING", "logger": __name__, "message": f"{name} {happened}"}), flush=True)
            else:
                print(f"{name} {happened}", flush=True)

    def _end_of_log(self, name: str) -> str:
        if self._logs is None:
            return "; its log is above."
        path = self._logs / f"{name}.log"
        return f" ({path}):\n{path.read_text(errors='replace')[-1500:]}"


def _own_name() -> str:
    """A name that the site responds to."""
    first = os.environ.get("ALLOWED_HOSTS", "").split(",")[0].strip()
    return first.lstrip(".").replace("*", "") or "localhost"


def lock_data_folder(data: Path) -> TextIO:
    """Return a locked file: two supervisors would do each other's runs and remove each other's files."""
    lock = (data / "demo.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StartFailed(f"Winnow is running on {data} already. Stop it, or change WINNOW_DATA.") from None
    return lock


def become_supervisor(data: Path, host: str, port: int, lock: int, *, greeting: str = "", logs: Path | None) -> None:
    """Replace this process by the supervisor, which keeps the lock's file descriptor open."""
    os.set_inheritable(lock, True)
    os.environ[GREETING] = greeting
    os.chdir(ROOT)
    words = [sys.executable, "manage.py", "demo", "--supervise", str(data), host, str(port), str(logs or "")]
    os.execv(sys.executable, words)  # noqa: S606


def supervise(data: str, host: str, port: str, logs: str) -> str | None:
    """Run the supervisor; return what prevented its start."""
    try:
        Supervisor(Path(data), host, int(port), Path(logs) if logs else None).run(os.environ.pop(GREETING))
    except StartFailed as failed:
        return str(failed)
    return None
