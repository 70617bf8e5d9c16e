"""Rollouts whose workers are killed twice: a result for each, none twice, and no sandbox left."""

from pathlib import Path
from typing import Any

import pytest

from tests.runs.elsewhere import own_database, run_elsewhere

SCENARIOS, SAMPLES, KILLS = 20, 10, 2


def check(found: dict[str, Any], rollouts: int) -> None:
    assert (found["state"], found["error"], found["failures"]) == ("succeeded", "", []), found
    assert found["kills_left"] == 0
    assert any("stopped responding" in message for message in found["events"])
    assert found["items"] == {"done": rollouts}
    assert found["trajectories"] == found["places"] == found["texts"] == rollouts
    assert found["samples"] == found["samples_of_rows"] == rollouts
    # Turns before a kill were answered from the record: every rollout ended as its script does.
    assert found["as_scripted"] == found["result"]["trajectories"] == rollouts
    assert found["answered_twice"] == 0
    # Sandboxes died with their worker, and nothing of them lies about.
    assert found["survivors"] == []
    assert found["records"] == []


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.timeout(420)
def test_every_rollout_has_one_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX", "bubblewrap")
    with own_database() as database:
        storm = ["tests.trajectories.rollout_storm", str(SCENARIOS), str(SAMPLES), str(KILLS)]
        check(run_elsewhere(*storm, folder=tmp_path, database=database), SCENARIOS * SAMPLES)
