from pathlib import Path

import pytest
from pytest_django import Settings

from curation.runs.calls import ask
from curation.runs.engine import dispatch
from curation.runs.workers import sandbox
from sandbox.protocol import SandboxBackend
from tests.sandbox.fake import FakeBackend
from tests.trajectories.rolling import Operators, has_greeting, todo_machine


@pytest.fixture(autouse=True)
def no_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doorbell rings for nobody, since tests drive runs themselves; tries follow each other quickly."""
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    monkeypatch.setattr(ask, "FIRST_PAUSE", 0.01)


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backend is tried once in each folder of data."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def bubblewrap(settings: Settings, data_folder: Path) -> None:
    """This machine's sandbox is bubblewrap's."""
    settings.SANDBOX, settings.WINNOW_DATA = "bubblewrap", data_folder


@pytest.fixture
def operators(monkeypatch: pytest.MonkeyPatch) -> Operators:
    """Stands in for what speaks to endpoints; everything else of a run is real."""
    found = Operators()
    monkeypatch.setattr("curation.runs.engine.llm_stage.client_for", lambda target: found)
    return found


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """Stands in for this machine's sandbox: the machine of `tests.factories.BUNDLE`, from a script."""
    found = FakeBackend(todo_machine, passes=has_greeting)

    def choose(*_: object, **__: object) -> SandboxBackend:
        return found

    monkeypatch.setattr(sandbox, "choose_backend", choose)
    return found
