from pathlib import Path

import pytest
from pytest_django import Settings

from curation.runs.engine import dispatch
from tests.duels.running import Models, serve


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files go to a folder of the test, and no run is dispatched, because tests drive runs themselves."""
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    return tmp_path / "files"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    return serve(monkeypatch)
