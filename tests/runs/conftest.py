from collections.abc import Iterator

import pytest

from curation.runs import kinds
from curation.runs.calls import ask
from curation.runs.engine import dispatch
from tests.model_server import ModelServer
from tests.runs.asking import SCRIPT, Script, register_asking


@pytest.fixture
def server(model_server: ModelServer) -> ModelServer:
    return model_server


@pytest.fixture
def dead() -> Iterator[ModelServer]:
    """A server that is stopped; nothing listens at its port."""
    server = ModelServer()
    server.stop()
    yield server
    server.stop()


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
