"""`manage.py demo` as a process: it starts, restarts what dies, refuses a second one, and leaves nothing behind."""

import http.server
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.serving import free_port

pytestmark = [pytest.mark.long, pytest.mark.embedded]
ROOT = Path(__file__).resolve().parents[3]


def environment(folder: Path, port: int) -> dict[str, str]:
    gone = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE")
    kept = {key: value for key, value in os.environ.items() if key not in gone}
    return {**kept, "WINNOW_DATA": str(folder), "PORT": str(port), "BIND": "127.0.0.1", "SANDBOX": "none"}


def demo(env: dict[str, str]) -> "subprocess.Popen[str]":
    return run("demo", env)


def run(name: str, env: dict[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "manage.py", name]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.2)


def children(pid: int) -> list[int]:
    """The demo's own children in the order of their start: web and two workers."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descendants(pid: int) -> set[int]:
    """The processes below this one, at any depth."""
    try:
        below = set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return set()
    return below.union(*map(descendants, below))


def is_running(pid: int) -> bool:
    """A killed process whose status nobody has read yet does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_line(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if words in line:
            break
    assert process.poll() is None, "".join(said)


def wait_until_ready(process: "subprocess.Popen[str]") -> None:
    """Not by asking the site: it answers a moment before the demo itself has seen that it does."""
    wait_for_line(process, "Winnow is ready")


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def running(tmp_path: Path, port: int) -> Iterator["subprocess.Popen[str]"]:
    process = demo(environment(tmp_path, port))
    try:
        wait_until_ready(process)
        yield process
    finally:
        process.terminate()
        process.wait(40)


class Healthy(http.server.BaseHTTPRequestHandler):
    """Answers like the health check of another Winnow."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"status": "ok", "instance": "of somebody else"}')

    def log_message(self, format: str, *args: object) -> None:
        """The requests are not of interest."""


@pytest.fixture
def occupied(port: int) -> Iterator[int]:
    """A port with somebody else's server, which listens on all addresses."""
    with http.server.ThreadingHTTPServer(("0.0.0.0", port), Healthy) as server:  # noqa: S104
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield port
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_pages_answer_while_the_project_is_made(tmp_path: Path, port: int) -> None:
    process = demo(environment(tmp_path, port))
    try:
        wait_for_line(process, "Winnow answers")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/login/", timeout=20) as page:
            assert page.status == 200
        wait_until_ready(process)
        assert answers(port)
        wait_for(lambda: len(children(process.pid)) == 3, 20)
    finally:
        process.terminate()
        process.wait(40)


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_a_killed_worker_and_web_are_restarted_and_stop_together(
    running: "subprocess.Popen[str]", tmp_path: Path, port: int
) -> None:
    wait_for(lambda: len(children(running.pid)) == 3, 60)  # the one that fills the project ends
    before = children(running.pid)
    for child in before:
        os.kill(child, signal.SIGKILL)
    wait_for(lambda: len(now := children(running.pid)) == 3 and not {*before} & {*now}, 30)
    wait_for(lambda: answers(port), 150)

    second = demo(environment(tmp_path, free_port()))
    said, _ = second.communicate(timeout=120)
    assert second.returncode != 0
    assert "is running on" in said

    after = children(running.pid)
    running.terminate()
    assert running.wait(40) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in after)


@pytest.mark.slow
@pytest.mark.timeout(540)
def test_a_killed_demo_leaves_no_process_and_no_lock(
    running: "subprocess.Popen[str]", tmp_path: Path, port: int
) -> None:
    wait_for(lambda: len(descendants(running.pid)) >= 5, 30)  # web and workers have processes of their own
    below = descendants(running.pid)
    running.kill()
    running.wait(10)
    again = demo(environment(tmp_path, port))
    try:
        wait_for(lambda: not any(map(is_running, below)), 2)
        wait_until_ready(again)
        assert answers(port)
    finally:
        again.terminate()
        again.wait(40)


def test_an_occupied_port_is_named_with_the_next_free_one(tmp_path: Path, occupied: int, settings: Settings) -> None:
    settings.WINNOW_DATA, settings.BIND, settings.PORT = tmp_path, "127.0.0.1", occupied
    with pytest.raises(CommandError, match=f"Port {occupied} is in use.") as refused:
        call_command("demo")
    said = str(refused.value)
    offered = re.search(r"Start with PORT=(\d+), which is free", said)
    assert offered is not None, said
    assert int(offered[1]) > occupied
    socket.create_server(("127.0.0.1", int(offered[1]))).close()
    assert {path.name for path in tmp_path.iterdir()} <= {"demo.lock"}, "nothing was made before the port was tried"


@pytest.mark.slow
def test_another_server_on_the_port_is_not_taken_for_ours(tmp_path: Path, port: int) -> None:
    """It takes the port after `serve` has tried it, and before the web server starts."""
    process = run("serve", environment(tmp_path, port))
    assert process.stdout is not None
    while "Winnow starts on port" not in process.stdout.readline():
        assert process.poll() is None
    with socket.create_server(("127.0.0.1", port)):
        said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert f"Port {port} is in use." in said


def test_the_demo_is_not_served_to_others(settings: Settings) -> None:
    settings.LOOPBACK_ONLY = False
    with pytest.raises(CommandError, match="password is public"):
        call_command("demo")
