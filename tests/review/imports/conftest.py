from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from curation.projects.models import Project, Role
from curation.runs.engine import dispatch
from tests.factories import make_member, make_project


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has its own folder for files. No run is dispatched: tests drive their runs themselves."""
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    return tmp_path / "files"


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def user(project: Project) -> User:
    return make_member(project, role=Role.CURATOR)
