"""The shop of `openenv_server` as a separate process on a free port."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 2


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def start_shop(port: int, most: int = MOST) -> subprocess.Popen[bytes]:
    return start_server("tests.sandbox.openenv_server", port, str(most))


def start_server(module: str, port: int, *args: str) -> subprocess.Popen[bytes]:
    """Start the server and wait until it responds."""
    server = subprocess.Popen([sys.executable, "-m", module, str(port), *args], cwd=ROOT)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return server
        except OSError:
            assert server.poll() is None, "the server ended at once"
            time.sleep(0.1)
    raise AssertionError("the server did not come up")


@pytest.fixture(scope="module")
def usual_servers() -> Iterator[str]:
    """The address of the stand-ins for usual environments, without the path of each."""
    port = free_port()
    process = start_server("tests.sandbox.usual_servers", port)
    yield f"ws://127.0.0.1:{port}"
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def shop_server() -> Iterator[str]:
    """The address of a shop that allows `MOST` episodes at once."""
    port = free_port()
    process = start_shop(port)
    yield f"ws://127.0.0.1:{port}"
    process.kill()
    process.wait()
