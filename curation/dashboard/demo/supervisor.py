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
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from curation.dashboard.demo.children import COMMANDS, HEAPS, ROOT, Child, fork_loaded, fork_once, log_file, start

GREETING, INSTANCE = "WINNOW_DEMO_GREETING", "WINNOW_INSTANCE"
STARTS_WITHIN, STOPS_WITHIN = 120.0, 20.0


class StartFailed(Exception):
    """The demo cannot start. The message names the remedy or ends with a child's log."""


def require_port(host: str, port: int) -> None:
    """Raise `StartFailed` if the port cannot be used; name the next free one."""
    error = _refusal(host, port)
    if error is None:
        return
    if isinstance(error, PermissionError):
        raise StartFailed(f"Port {port} is not allowed for this user. Choose one above 1023, such as PORT=8000.")
    free = next((other for other in range(port + 1, 65536) if _refusal(host, other) is None), None)
    raise StartFailed(f"Port {port} is in use." + (f" Start with PORT={free}, which is free." if free else ""))


def demo_command(setting: str) -> str:
    """Return the command that starts the demo with a setting: `make` in a clone, else the installed command."""
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
    server on the port is not taken for them. A child after those of `COMMANDS` ends by itself.
    """

    def __init__(self, host: str, port: int, logs: Path | None, pids: Sequence[int]) -> None:
        children = list(map(Child, pids))
        self._children = dict(zip(COMMANDS, children, strict=False))
        self._ending = children[len(COMMANDS) :]
        self._stopping = False
        self._host, self._port, self._logs = host, port, logs

    def run(self, greeting: str) -> None:
        """Start the children, print the greeting once the site responds, and return after they have stopped."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        try:
            self._wait_until_ready()
            if greeting and not self._stopping:
                print(greeting, flush=True)
            while not self._stopping:
                self._ending = [child for child in self._ending if child.poll() is None]
                self._restart_dead()
                time.sleep(0.5)
        finally:
            self._stop_all()

    def _stop(self, number: int, frame: types.FrameType | None) -> None:
        self._stopping = True

    def _restart_dead(self) -> None:
        for name, child in list(self._children.items()):
            if child.poll() is not None:
                self._report(name, f"exited with status {child.status}, restarted")
                self._children[name] = start(name, self._logs)
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
        return isinstance(answer, dict) and answer.get("instance") == os.environ[INSTANCE]

    def _stop_all(self) -> None:
        children = [*self._children.values(), *self._ending]
        for child in children:
            child.send(signal.SIGTERM)
        until = time.monotonic() + STOPS_WITHIN
        for child in children:
            if not child.ends_within(max(0.1, until - time.monotonic())):
                child.send(signal.SIGKILL)

    def _report(self, name: str, happened: str) -> None:
        if self._logs is not None:
            with log_file(self._logs, name).open("a") as log:
                log.write(f"--- {happened}\n")
        elif os.environ.get("LOG_FORMAT") == "json":
            print(json.dumps({"level": "WARNING", "logger": __name__, "message": f"{name} {happened}"}), flush=True)
        else:
            print(f"{name} {happened}", flush=True)

    def _end_of_log(self, name: str) -> str:
        if self._logs is None:
            return "; its log is above."
        path = log_file(self._logs, name)
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


def become_supervisor(
    data: Path,
    host: str,
    port: int,
    lock: TextIO,
    *,
    greeting: str = "",
    logs: Path | None,
    beside: Callable[[], None] | None = None,
) -> None:
    """Start the children and replace this process by their supervisor, which keeps the lock.

    `beside` is done once, in a child of its own.
    """
    if logs is not None:
        logs.mkdir(exist_ok=True)
    os.environ |= {INSTANCE: secrets.token_hex(16), "WINNOW_DATA": str(data), "MALLOC_ARENA_MAX": str(HEAPS)}
    pids = fork_loaded(logs, lock.close)
    if beside is not None:
        pids.append(fork_once(beside, lock.close))
    os.environ[GREETING] = greeting
    os.set_inheritable(lock.fileno(), True)
    os.chdir(ROOT)
    words = ["demo", "--supervise", host, str(port), str(logs or ""), ",".join(map(str, pids))]
    os.execv(sys.executable, [sys.executable, "manage.py", *words])  # noqa: S606


def supervise(host: str, port: str, logs: str, pids: str) -> str | None:
    """Run the supervisor; return the reason if it could not start."""
    try:
        Supervisor(host, int(port), Path(logs) if logs else None, [int(pid) for pid in pids.split(",")]).run(
            os.environ.pop(GREETING)
        )
    except StartFailed as failed:
        return str(failed)
    return None
