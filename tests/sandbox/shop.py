"""The shop of `openenv_server` as a separate process on a free port."""

import socket
import time
from collections.abc import Iterator
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

import pytest

from tests.serving import free_port

MOST = 2
# What `cloud_server` plays; importing that takes half a second.
CLOUD_TIERS = ("warmup", "beginner", "intermediate", "advanced", "expert")
CLOUD_TASKS = [
    {
        "task_id": number,
        "difficulty": tier,
        "description": f"Create {1 + place} buckets of the kind '{tier}-{half}'.",
        "success_criteria": {"command_contains": "SECRET-CRITERION", "buckets": 1 + place},
    }
    for number, (place, tier, half) in enumerate(
        (place, tier, half) for place, tier in enumerate(CLOUD_TIERS) for half in "ab"
    )
]
# Importing openenv-core takes 1.5 s of processor time: it is done once, in the process from which all servers fork.
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["tests.sandbox.cloud_server", "tests.sandbox.openenv_server", "tests.sandbox.usual_servers"]
)


def start_shop(port: int, most: int = MOST) -> BaseProcess:
    return start_server("openenv_server", port, most)


def start_server(name: str, port: int, *args: object) -> BaseProcess:
    """Start the server of this module and wait until it responds."""
    server = CONTEXT.Process(target=_serve, args=(name, port, *args), daemon=True)
    server.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return server
        except OSError:
            assert server.is_alive(), "the server ended at once"
            time.sleep(0.02)
    raise AssertionError("the server did not come up")


def _serve(name: str, *args: object) -> None:
    import_module(f"tests.sandbox.{name}").serve(*args)


@pytest.fixture(scope="module")
def usual_servers() -> Iterator[str]:
    """The address of the stand-ins for usual environments, without the path of each."""
    port = free_port()
    process = start_server("usual_servers", port)
    yield f"ws://127.0.0.1:{port}"
    process.kill()
    process.join()


@pytest.fixture(scope="module")
def shop_server() -> Iterator[str]:
    """The address of a shop that allows `MOST` episodes at once."""
    port = free_port()
    process = start_shop(port)
    yield f"ws://127.0.0.1:{port}"
    process.kill()
    process.join()
