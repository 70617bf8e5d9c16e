"""Launching while Redis is silent or killed: no request hangs, pages say so, and the runs are done afterwards."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from kombu import Consumer, Message, Queue

from config.celery import Reconnecting
from tests.parts import missing
from tests.runs.elsewhere import own_database, run_elsewhere
from tests.runs.storm import Redis
from tests.serving import free_port


@pytest.fixture
def port() -> int:
    """A port for a Redis of the test's own."""
    if shutil.which("redis-server") is None:
        missing("redis-server is not installed, and the Redis of TEST_BROKER_URL is not ours to stop")
    return free_port()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_runs_wait_for_a_silent_or_killed_broker(tmp_path: Path, port: int) -> None:
    broker = f"redis://127.0.0.1:{port}/0"
    with own_database() as database:
        found = run_elsewhere("tests.runs.silent_broker", folder=tmp_path, database=database, broker=broker)
    for name, seen in found.items():
        assert seen["launching"] < 12, (name, seen)
        assert seen["again"] < 2, "the second launch does not wait again"
        assert seen["warned"] < 12 and seen["page"] < 2, (name, seen)
        assert seen["done"] < 30 and seen["states"] == ["succeeded", "succeeded"], (name, seen)
        assert seen["quiet"] < 12, (name, seen)


def test_a_connection_with_an_unfinished_message_can_be_closed_when_its_broker_is_killed(
    tmp_path: Path, port: int
) -> None:
    redis = Redis(port, tmp_path)
    taken: list[Message] = []
    connection = Reconnecting(f"redis://127.0.0.1:{port}/0")
    connection.Producer().publish("a task", routing_key="work", retry=True, declare=[Queue("work")])
    channels: list[Any] = [connection.default_channel, connection.channel()]
    for channel, queue in zip(channels, ("work", "other"), strict=True):
        Consumer(channel, [Queue(queue)], on_message=taken.append).consume()
    while not taken:
        connection.drain_events(timeout=5)
    with pytest.raises(TimeoutError):
        connection.drain_events(timeout=0.1)
    redis.stop()
    # As a worker does before it connects again: an exception here would end it.
    connection.collect(socket_timeout=1)
    connection.close()
    assert channels[0].closed
