from pathlib import Path

import pytest
from pytest_django import Settings

from curation.runs.engine import dispatch


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has its own folder for files. No run is dispatched: tests drive their runs themselves."""
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    return tmp_path / "files"
