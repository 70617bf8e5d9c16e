"""A site for the client: runs are driven by the tests, and tries follow each other without a wait."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from curation.projects.models import Project as ProjectRow
from curation.runs.engine import dispatch
from tests.factories import make_bearer, make_project, make_user
from winnow_client import transport


@pytest.fixture(autouse=True)
def quiet(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files go to a folder of the test; runs are driven by the test; waits between tries are short."""
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    monkeypatch.setattr(transport.Transport, "_backoff", lambda *args: 0.0)


@pytest.fixture
def ada() -> User:
    return make_user("ada")


@pytest.fixture
def row(ada: User) -> ProjectRow:
    return make_project("acme", user=ada)


@pytest.fixture
def token(ada: User) -> str:
    return make_bearer(ada)["Authorization"].removeprefix("Bearer ")
