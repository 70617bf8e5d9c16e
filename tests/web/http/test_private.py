"""Private data: no pages in caches, and no files that other accounts of the machine could read."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from curation.web.apps import private_data
from tests.factories import make_project, make_user


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/?all=1", "/p/acme/samples/", "/p/acme/queue/", "/nowhere/", "/p/none/settings/"])
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_pages_of_a_signed_in_person_are_not_stored(client: Client, path: str, headers: dict[str, str]) -> None:
    user = make_user()
    make_project("acme", user=user)
    client.force_login(user)
    answer = client.get(path, headers=headers)
    if answer["Content-Type"].startswith("text/html"):
        assert answer["Cache-Control"] == "no-store"


def test_static_files_may_be_stored(client: Client) -> None:
    assert "no-store" not in client.get("/static/css/base.css").get("Cache-Control", "")


def test_a_new_data_folder_and_database_belong_to_their_owner(tmp_path: Path) -> None:
    data = tmp_path / "data"
    environment = {**os.environ, "WINNOW_DATA": str(data), "DATABASE_URL": "", "CELERY_BROKER_URL": "", "FILES_URL": ""}
    code = "from django.db import connection; connection.ensure_connection()"
    environment["DJANGO_SETTINGS_MODULE"] = "config.settings"
    subprocess.run([sys.executable, "-c", f"import os; os.umask(0o022); {code}"], env=environment, check=True)
    assert data.stat().st_mode & 0o777 == 0o700
    assert (data / "winnow.sqlite3").stat().st_mode & 0o777 == 0o600


def test_wider_modes_are_named_by_a_check(tmp_path: Path, settings: Settings) -> None:
    database = tmp_path / "winnow.sqlite3"
    sqlite3.connect(database).close()
    settings.WINNOW_DATA = tmp_path
    settings.DATABASES = {"default": {"ENGINE": "config.sqlite3", "NAME": str(database)}}
    tmp_path.chmod(0o755)
    database.chmod(0o644)
    assert [found.hint for found in private_data()] == [f"chmod 700 {tmp_path}", f"chmod 600 {database}"]
    tmp_path.chmod(0o700)
    database.chmod(0o600)
    assert private_data() == []
