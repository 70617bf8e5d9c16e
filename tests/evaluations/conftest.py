from pathlib import Path

import pytest
from pytest_django import Settings

from curation.runs.calls import ask
from curation.runs.engine import dispatch
from tests.model_server import ModelServer


@pytest.fixture
def server(model_server: ModelServer) -> ModelServer:
    return model_server


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test go to a folder of its own; short pauses; the doorbell rings for nobody."""
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(ask, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
