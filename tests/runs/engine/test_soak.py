"""Imports, duels and exports while workers, Redis and PostgreSQL are killed; every row is compared with a quiet wave's.

`SOAK_KILLS` changes the numbers of kills of workers, Redis and PostgreSQL: `8,2,2` takes some minutes.
"""

import os
import shlex
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.parts import missing
from tests.postgres import Postgres
from tests.runs.elsewhere import run_elsewhere
from tests.runs.soak import TURNS
from tests.serving import free_port

RECOVERED_WITHIN = 30.0


def soak(server: Postgres, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    if shutil.which("redis-server") is None:
        missing("redis-server is not installed, and the Redis of TEST_BROKER_URL is not ours to restart")
    counts = os.environ.get("SOAK_KILLS", "100,20,10").split(",")
    port = free_port()
    monkeypatch.setenv("POSTGRES_RESTART", shlex.join(server.restart))
    monkeypatch.setenv("REDIS_PORT", str(port))
    broker = f"redis://127.0.0.1:{port}/0"
    return run_elsewhere("tests.runs.soak", *counts, folder=folder, database=server.url, broker=broker)


def lines(found: dict[str, Any]) -> list[str]:
    """The figures in words."""
    said = [f"{found['waves']} waves in {found['seconds']} s; the quiet one took {found['quiet_seconds']} s"]
    for what, seconds in found["recovered"].items():
        if seconds:
            times = [f"{median(each):.1f} s, at most {max(each):.1f} s" for each in (found["freed"][what], seconds)]
            said.append(f"{len(seconds)} kills of {what}: items free after {'; the next done after '.join(times)}")
    return said


@pytest.mark.slow
@pytest.mark.timeout(2700)
def test_nothing_is_lost_or_doubled_when_processes_are_killed(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = soak(postgres, tmp_path, monkeypatch)
    with capsys.disabled():
        print("", *lines(found), sep="\n")
    assert (found["kills_left"], found["survivors"]) == (0, [])
    first = found["first"]
    assert [state for _, state, _ in first["runs"]] == ["succeeded"] * 3, first["runs"]
    # Three judges in both orders, and of so few duels two control duels each.
    assert first["rows"]["duels"] == TURNS and len(first["rows"]["verdicts"]) == 3 * TURNS * 6, first
    assert sum(first["rows"]["exported"].values()) == TURNS * 2
    for wave in [first, *found["others"]]:
        # As without kills: each row, and each item once.
        assert wave["runs"] == first["runs"] and wave["failures"] == []
        assert wave["rows"] == first["rows"]
        assert wave["items"] == first["items"] and wave["open"] == 0
        # The counters are the sums over calls and items, and no answer was paid for twice.
        assert (wave["miscounted"], wave["answered_twice"]) == ([], 0)
        assert set(wave["calls"]) <= {"ok", "error", "lost"} and wave["calls"]["ok"] == first["calls"]["ok"]
    # Every answer of the server was recorded, or lost with its worker or its database.
    assert found["ok"] <= found["answered"] <= found["ok"] + found["lost"]
    freed, recovered = ([each for times in found[name].values() for each in times] for name in ("freed", "recovered"))
    assert max(freed) <= RECOVERED_WITHIN
    # Then a process of its own starts for suspects, which can take longer on a busy machine.
    assert median(recovered) <= RECOVERED_WITHIN
