from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from curation.runs.calls import ask
from curation.runs.engine import dispatch
from tests.model_server import ModelServer, model_server

__all__ = ["model_server"]


@pytest.fixture(scope="package")
def server_process() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.stop()


@pytest.fixture
def server(server_process: ModelServer) -> ModelServer:
    """A model server that behaves, and that nobody has asked yet."""
    server_process.forget()
    return server_process


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test go to a folder of its own; short pauses; the doorbell rings for nobody."""
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(ask, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
