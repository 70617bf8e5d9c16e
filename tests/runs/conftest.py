from collections.abc import Iterator

import pytest

from curation.runs import kinds
from curation.runs.calls import ask
from curation.runs.engine import dispatch
from tests.model_server import ModelServer, model_server
from tests.runs.asking import SCRIPT, Script, register_asking

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
def asking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kind `asking`, short pauses between tries, and no message to a broker: tests drive runs themselves."""
    register_asking()
    monkeypatch.setattr(ask, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    yield
    kinds._kinds.pop("asking", None)
    for name, value in vars(Script()).items():
        setattr(SCRIPT, name, value)
