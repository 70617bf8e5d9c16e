"""A run as a worker drives it, and the fixture of tests that drive their runs themselves."""

from pathlib import Path

import pytest
from pytest_django import Settings

from curation.runs.engine import dispatch
from curation.runs.engine.worker import drive
from curation.runs.models import LIVE, Run


def end(run: Run) -> Run:
    """Drive a run shard by shard until it has ended."""
    for _ in range(20):
        drive(run.pk)
        run.refresh_from_db()
        if run.state not in LIVE:
            return run
    raise AssertionError(f"run {run.pk} is {run.state} in stage {run.stage}")


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files go to a folder of the test, and no run is dispatched, because tests drive runs themselves."""
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    return tmp_path / "files"
