from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from curation.projects.models import Project
from curation.runs.engine import dispatch
from tests.factories import make_project, make_user


@pytest.fixture
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of a test go to a folder of its own; the doorbell rings for nobody, since tests drive runs themselves."""
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    return tmp_path / "files"


@pytest.fixture
def project(client: Client) -> Project:
    ada = make_user("ada")
    client.force_login(ada)
    return make_project("shell", user=ada)
