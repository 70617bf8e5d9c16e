"""Duels × 3 judges × 2 orders while workers are killed, the broker restarts and a fifth of all calls go wrong."""

import shutil
import socket
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.parts import missing
from tests.runs.elsewhere import own_database, run_elsewhere

DUELS, KILLS = 300, 3


def check(found: dict[str, Any], duels: int) -> None:
    """Complete, nothing twice, and every cent accounted for."""
    verdicts = duels * 3 * 2
    items = duels * 2 + verdicts
    assert (found["state"], found["error"], found["failures"]) == ("succeeded", "", []), found["events"]
    assert found["kills_left"] == 0
    assert found["survivors"] == []  # no process outlived the worker that was killed
    assert any("stopped responding" in message for message in found["events"])
    # Items of the stages king, challenger and judge, and a few of score and verdict.
    assert found["items"] == {"done": found["counted"]["done"]}
    assert found["counted"]["total"] == found["counted"]["done"] >= items
    assert found["duels"] == duels
    assert found["verdicts"] == found["verdict_places"] == found["parsed"] == verdicts
    assert found["accepted"] == found["answered_sides"] == duels * 2
    # The counters of the run are the sums over its calls.
    calls = found["calls"]
    assert set(calls) <= {"ok", "error", "lost"}
    assert found["calls_counted"] == sum(calls.values())
    assert found["unknown_counted"] == found["unknown"]
    assert Decimal(found["cost_counted"]) == Decimal(found["cost"]) > 0
    assert found["tokens_counted"] == found["tokens"]
    # Every answer of the server was recorded, or was under way when its worker was killed; no answered request was
    # repeated.
    assert found["answered_twice"] == 0
    assert calls["ok"] == items
    assert items <= found["server"]["answered"] <= items + calls["lost"]


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.timeout(420)
def test_on_sqlite_with_the_embedded_broker(tmp_path: Path) -> None:
    check(run_elsewhere("tests.runs.storm", str(DUELS), str(KILLS), folder=tmp_path, database=""), DUELS)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.timeout(420)
def test_on_postgresql_with_a_redis_that_is_restarted(tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        missing("redis-server is not installed, and the Redis of TEST_BROKER_URL is not ours to restart")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    broker = f"redis://127.0.0.1:{port}/0"
    with own_database() as database:
        storm = ["tests.runs.storm", str(DUELS), str(KILLS), "--redis", str(port)]
        check(run_elsewhere(*storm, folder=tmp_path, database=database, broker=broker), DUELS)
