"""A disk without room, for real: a small file system as the data folder."""

import gzip
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client
from psycopg import errors
from pytest_django import Settings

from config import embedded_broker
from curation.runs.control import resume
from curation.runs.engine import dispatch
from curation.runs.models import RunEvent, RunState
from curation.web.failures import DiskFull, failure_of
from tests.exports.exporting import make_approved, run_export
from tests.factories import make_bearer, make_project, make_user
from tests.imports.bringing import as_lines, chat, end, start
from tests.parts import missing

ROOT = Path(__file__).resolve().parents[2]
SIZE = 24 * 1024 * 1024


class Disk:
    """A file system of `SIZE` bytes that can be filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.filler = folder / "filler"

    def fill(self, but: int = 0) -> None:
        """Leave `but` bytes free."""
        with self.filler.open("wb") as file:
            room = os.statvfs(self.folder)
            file.write(b"\0" * (room.f_bavail * room.f_frsize - but))

    def free(self) -> None:
        self.filler.unlink()

    def names(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path != self.filler}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        missing("a file system cannot be mounted here")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def data(disk: Disk, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The small disk has the files of this process."""
    settings.WINNOW_DATA = disk.folder
    settings.MEDIA_ROOT = disk.folder / "files"
    settings.FILE_UPLOAD_TEMP_DIR = str(disk.folder)
    (disk.folder / "files").mkdir()
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    return disk


pytestmark = pytest.mark.django_db(transaction=True)


class TestFiles:
    @pytest.mark.parametrize("size", [200_000, 4_000_000])
    def test_an_upload_is_refused_by_name_and_leaves_nothing(self, data: Disk, client: Client, size: int) -> None:
        user = make_user()
        project = make_project("small", user=user)
        before = data.names()
        data.fill(but=100_000)
        file = SimpleUploadedFile("turns.jsonl", os.urandom(size))
        client.raise_request_exception = False
        answer = client.post(
            "/api/v1/projects/small/imports", {"kind": "turns", "file": file}, headers=make_bearer(user, "run")
        )
        assert (answer.status_code, answer.json()["code"]) == (503, "disk_full")
        assert answer.json()["detail"].startswith(f"The disk is full: {data.folder}")
        client.force_login(user)
        page = client.post(
            "/p/small/imports/new/", {"kind": "turns", "file": SimpleUploadedFile("a", os.urandom(size))}
        )
        assert page.status_code == 503
        assert f"The disk is full: {data.folder}" in page.content.decode()
        assert data.names() - before <= {"files/uploads", f"files/uploads/{project.pk}"}

    def test_an_import_says_so_and_continues_when_there_is_room(self, data: Disk) -> None:
        rows = as_lines([chat(number, note="x" * 50_000) for number in range(200)])
        run = start(make_project(), "turns", gzip.compress(rows), "turns.jsonl.gz")
        data.fill(but=1_000_000)
        end(run)
        assert run.state == RunState.FAILED
        assert run.error.startswith(f"The disk is full: {data.folder}") and "then try again" in run.error
        assert run.items_failed == 0
        data.free()
        resume(run=run, user=None)
        assert end(run).state == RunState.SUCCEEDED
        assert run.result["rows"] == 200

    def test_an_export_leaves_no_half_files_and_continues(self, data: Disk) -> None:
        project = make_project()
        for number in range(6):
            make_approved(project, challenger=f"THOUGHT: {number}\n```bash\necho {os.urandom(40_000).hex()}\n```")
        data.fill(but=60_000)
        export = run_export(project, {"formats": ["sft-messages"]})
        assert export.run.state == RunState.FAILED
        assert export.run.error.startswith("The disk is full: ")
        assert not {name for name in data.names() if name.startswith("files/exports/") and "." in name}
        data.free()
        resume(run=export.run, user=None)
        end(export.run)
        end(export.run)
        export.refresh_from_db()
        assert (export.run.state, export.ready) == (RunState.SUCCEEDED, True)

    def test_ready_names_it(self, data: Disk, client: Client) -> None:
        parts = {part["name"]: part for part in client.get("/api/v1/ready").json()["parts"]}
        assert parts["disk"]["ok"] and parts["files"]["ok"]
        data.fill()
        answer = client.get("/api/v1/ready")
        parts = {part["name"]: part for part in answer.json()["parts"]}
        assert (answer.status_code, parts["disk"]["ok"]) == (503, False)
        assert f"The disk is full: {data.folder}" in parts["disk"]["detail"]

    def test_half_a_file_in_storage_is_removed(self, data: Disk) -> None:
        data.fill(but=50_000)
        with pytest.raises(DiskFull):
            default_storage.save("a/b/large", io.BytesIO(os.urandom(500_000)))
        assert not (data.folder / "files/a/b").exists()


class TestBroker:
    def test_a_message_that_does_not_fit_leaves_no_hidden_file(self, disk: Disk) -> None:
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            embedded_broker._write_atomically(disk.folder / "1.llm.msg", "x" * 100_000)
        assert disk.names() == set()

    def test_the_run_says_why_it_waits(self, disk: Disk, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        def send(*args: object) -> None:
            embedded_broker._write_atomically(disk.folder / "1.default.msg", "x" * 100_000)

        monkeypatch.setattr(dispatch, "send_work", send)
        settings.MEDIA_ROOT = settings.WINNOW_DATA = disk.folder
        run = start(make_project(), "turns", as_lines([chat(1)]))
        disk.fill()
        dispatch.dispatch(run.pk)
        message = RunEvent.objects.newest(run)[0].message
        assert message.startswith(f"The disk is full: {disk.folder}") and "The run continues then." in message

    def test_what_killed_processes_left_is_deleted(self, tmp_path: Path) -> None:
        old, new, waiting = tmp_path / ".old", tmp_path / ".new", tmp_path / "1.llm.msg"
        for file in (old, new, waiting):
            file.touch()
        for file in (old, waiting):
            os.utime(file, (0, 0))
        embedded_broker._delete_leftovers(tmp_path)
        assert set(tmp_path.iterdir()) == {new, waiting}


class TestDatabase:
    @pytest.mark.slow
    @pytest.mark.embedded
    def test_sqlite_and_the_start_of_the_demo_name_the_folder(self, disk: Disk) -> None:
        environment = {**os.environ, "WINNOW_DATA": str(disk.folder), "DATABASE_URL": "", "CELERY_BROKER_URL": ""}

        def manage(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "manage.py", *command],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )

        disk.fill()
        first = manage("demo", "--prepare-only")
        assert first.returncode == 1
        assert "The disk is full: " in first.stderr and str(disk.folder) in first.stderr
        assert "Traceback" not in first.stderr
        assert not {name for name in disk.names() if Path(name).name.startswith(".secret_key")}
        disk.free()
        disk.fill(but=400_000)
        second = manage("migrate")
        assert second.returncode == 1
        assert f"The disk is full: {disk.folder}" in second.stderr and "Traceback" not in second.stderr
        disk.free()
        assert manage("migrate").returncode == 0

    def test_postgresqls_own_words(self) -> None:
        error = OperationalError("could not extend file")
        error.__cause__ = errors.DiskFull('could not extend file "base/1/2": No space left on device')
        found = failure_of(error)
        assert found is not None and found.detail.startswith("The disk is full: on the server of the database.")

    def test_other_errors_are_no_full_disk(self) -> None:
        assert failure_of(OSError(5, "Input/output error")) is None
        assert failure_of(ValueError("No space left on device")) is None
