"""Web and workers that do not share their files say so, with the setting."""

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from curation.runs.models import RunState, WorkerSeen
from curation.runs.workers.storage import MARK, WATCH_MARK, own_storage
from tests.factories import make_project, make_user
from tests.imports.bringing import as_lines, chat, end, start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def elsewhere(tmp_path: Path, settings: Settings) -> str:
    """The report of a worker on a machine with a data folder of its own; this process has another."""
    settings.MEDIA_ROOT, settings.FILES_URL = tmp_path / "theirs", "file:///theirs"
    theirs = own_storage().model_copy(update={"host": "worker-7"})
    now = timezone.now()
    WorkerSeen.objects.create(
        name="celery@worker-7", queues="default", started_at=now, seen_at=now, storage=theirs.model_dump()
    )
    settings.MEDIA_ROOT, settings.FILES_URL = tmp_path / "ours", "file:///ours"
    return theirs.mark


def test_the_mark_is_made_once_and_belongs_to_the_files(tmp_path: Path, settings: Settings) -> None:
    settings.MEDIA_ROOT = tmp_path
    first = own_storage().mark
    assert first and (tmp_path / MARK).read_text() == first == own_storage().mark


def test_the_mark_of_a_watched_folder_is_no_link(tmp_path: Path, settings: Settings) -> None:
    settings.MEDIA_ROOT, settings.WATCH_FOLDER = tmp_path / "files", tmp_path
    first = own_storage().watched
    assert first and (tmp_path / WATCH_MARK).read_text() == first
    secret = tmp_path / "secret"
    secret.write_text("not to be told")
    (tmp_path / WATCH_MARK).unlink()
    (tmp_path / WATCH_MARK).symlink_to(secret)
    settings.MEDIA_ROOT = tmp_path / "others"
    assert own_storage().watched == ""


def test_ready_and_the_system_page_name_the_worker_and_the_settings(elsewhere: str, client: Client) -> None:
    answer = client.get("/api/v1/ready")
    found = next(part for part in answer.json()["parts"] if part["name"] == "files")
    assert (answer.status_code, found["ok"]) == (503, False)
    for word in ("celery@worker-7", "worker-7", "file:///theirs", "file:///ours", "FILES_URL", "WINNOW_DATA"):
        assert word in found["detail"]
    user = make_user()
    make_project("apart", user=user)
    client.force_login(user)
    assert "has other files than this server" in client.get("/p/apart/system/").content.decode()


def test_a_worker_with_the_same_files_is_ready(elsewhere: str, client: Client) -> None:
    worker = WorkerSeen.objects.get()
    worker.storage["mark"] = own_storage().mark
    worker.save()
    assert client.get("/api/v1/ready").status_code == 200


def test_a_worker_that_cannot_use_the_files_says_why(elsewhere: str, client: Client) -> None:
    worker = WorkerSeen.objects.get()
    worker.storage |= {"mark": "", "error": "NoSuchBucket"}
    worker.save()
    found = next(part for part in client.get("/api/v1/ready").json()["parts"] if part["name"] == "files")
    assert found["detail"] == "Worker celery@worker-7 cannot use file:///theirs: NoSuchBucket"


def test_an_import_names_the_file_that_its_worker_does_not_have(tmp_path: Path, settings: Settings) -> None:
    settings.MEDIA_ROOT, settings.FILES_URL = tmp_path / "web", f"file://{tmp_path / 'web'}"
    run = start(make_project(), "turns", as_lines([chat(1)]))
    settings.MEDIA_ROOT, settings.FILES_URL = tmp_path / "worker", f"file://{tmp_path / 'worker'}"
    end(run)
    assert run.state == RunState.FAILED
    for word in (run.params["upload"], f"file://{tmp_path / 'worker'}", "FILES_URL", "WINNOW_DATA"):
        assert word in run.error
    assert "FileNotFoundError" not in run.error
