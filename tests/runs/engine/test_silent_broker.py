"""Launching while Redis is silent or killed: no request hangs, pages say so, and the runs are done afterwards."""

import shutil
import socket
from pathlib import Path

import pytest

from tests.parts import missing
from tests.runs.elsewhere import own_database, run_elsewhere


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_runs_wait_for_a_silent_or_killed_broker(tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        missing("redis-server is not installed, and the Redis of TEST_BROKER_URL is not ours to stop")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    broker = f"redis://127.0.0.1:{port}/0"
    with own_database() as database:
        found = run_elsewhere("tests.runs.silent_broker", folder=tmp_path, database=database, broker=broker)
    for name, seen in found.items():
        assert seen["launching"] < 12, (name, seen)
        assert seen["again"] < 2, "the second launch does not wait again"
        assert seen["warned"] < 12 and seen["page"] < 2, (name, seen)
        assert seen["done"] < 30 and seen["states"] == ["succeeded", "succeeded"], (name, seen)
        assert seen["quiet"] < 12, (name, seen)
