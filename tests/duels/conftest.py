import pytest

from tests.driving import storage  # noqa: F401 - a fixture of every test here
from tests.duels.running import Models, serve


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    return serve(monkeypatch)
