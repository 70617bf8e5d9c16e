"""Downloads: ranges, versions, the archive; and nothing of an export whose worker was killed."""

import hashlib
import io
import itertools
import tarfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from curation.exports.files.attempt import AttemptFiles
from curation.exports.files.download import DamagedFile, copy_checked
from curation.exports.models import Export
from curation.exports.rows import freeze as freeze_module
from curation.projects.models import Role
from curation.runs.engine.reap import reap_all
from curation.runs.engine.sync_stage import Interrupted, ItemContext
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Item, ItemState, RunState
from tests.exports.exporting import approve, content, drive_export, export_of, make_approved, reasons, rows, run_export
from tests.factories import make_bearer, make_member, make_project, make_user
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "sft-messages.train.jsonl"


class Downloads:
    """An export, and a caller that may read it."""

    def __init__(self) -> None:
        self.project = make_project()
        user = make_user()
        for _ in range(3):
            make_approved(self.project, by=user)
        self.export = run_export(self.project, {"formats": ["sft-messages", "dpo"]})
        self.token = make_bearer(make_member(self.project, role=Role.VIEWER))
        self.data = content(self.export, NAME)

    def __call__(self, name: str = NAME, method: str = "get", **headers: str) -> Any:
        sent = self.token | {key.replace("_", "-"): value for key, value in headers.items()}
        return getattr(Client(), method)(f"/api/v1/exports/{self.export.pk}/files/{name}", headers=sent)


@world
def get(patched: pytest.MonkeyPatch) -> Downloads:
    return Downloads()


def body(answer: Any) -> bytes:
    return bytes(answer.getvalue())


def test_a_file_is_sent_whole_with_its_hash_and_name(get: Downloads) -> None:
    answer = get()
    assert answer.status_code == 200 and body(answer) == get.data
    digest = hashlib.sha256(get.data).hexdigest()
    assert answer.headers["ETag"] == f'"{digest}"' and answer.headers["X-Content-Sha256"] == digest
    assert answer.headers["Content-Length"] == str(len(get.data))
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{NAME}"'
    assert answer.headers["Accept-Ranges"] == "bytes" and answer.headers["Content-Type"] == "application/x-ndjson"


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=5-", 5, None),
        ("bytes=-7", -7, None),
        ("bytes=3-3", 3, 4),
        ("Bytes=0-99999", 0, None),
    ],
)
def test_one_range_is_sent(get: Downloads, header: str, low: int, high: int | None) -> None:
    answer = get(Range=header)
    wanted = get.data[low:high]
    start = low % len(get.data)
    assert answer.status_code == 206 and body(answer) == wanted
    assert answer.headers["Content-Range"] == f"bytes {start}-{start + len(wanted) - 1}/{len(get.data)}"
    assert answer.headers["Content-Length"] == str(len(wanted))


def test_a_suffix_longer_than_the_file_is_the_file(get: Downloads) -> None:
    answer = get(Range="bytes=-999999")
    assert answer.status_code == 206 and body(answer) == get.data


@pytest.mark.parametrize("header", ["bytes=999999-", "bytes=-0", "bytes=999999-1000000, 999999-"])
def test_a_range_beyond_the_end_is_416_with_the_length(get: Downloads, header: str) -> None:
    answer = get(Range=header)
    assert answer.status_code == 416 and answer.headers["Content-Range"] == f"bytes */{len(get.data)}"


@pytest.mark.parametrize(
    "header", ["bytes=0-1, 4-5", "bytes=9-2", "rows=0-1", "bytes=", "bytes=a-b", "bytes=-", "bytes"]
)
def test_several_ranges_and_invalid_ones_get_the_whole_file(get: Downloads, header: str) -> None:
    answer = get(Range=header)
    assert answer.status_code == 200 and body(answer) == get.data


def test_a_resumed_download_of_another_version_starts_over(get: Downloads) -> None:
    etag = get().headers["ETag"]
    assert get(Range="bytes=5-", If_Range=etag).status_code == 206
    assert get(Range="bytes=5-", If_Range='"other"').status_code == 200
    assert get(Range="bytes=5-", If_Range="Sat, 01 Jan 2028 00:00:00 GMT").status_code == 200


def test_an_unchanged_file_is_not_sent_again_and_head_sends_none(get: Downloads) -> None:
    etag = get().headers["ETag"]
    again = get(If_None_Match=etag)
    assert again.status_code == 304 and again.content == b""
    head = get(method="head")
    assert head.status_code == 200 and head.headers["Content-Length"] == str(len(get.data)) and body(head) == b""


def test_names_of_other_files_are_not_found(get: Downloads) -> None:
    for name in ("nothing.jsonl", "..", "%2e%2e%2fwinnow.sqlite3", "..%2f..%2fsecret_key"):
        assert get(name).status_code == 404


def test_a_file_lost_from_storage_is_another_error_than_an_unknown_one(get: Downloads) -> None:
    default_storage.delete(get.export.files.get(name=NAME).stored_as)
    assert get().status_code == 503


def test_the_archive_has_every_file_and_can_be_resumed(get: Downloads) -> None:
    whole = body(get("archive.tar"))
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        names = {member.name.partition("/")[2]: archive.extractfile(member) for member in archive.getmembers()}
        held = {name: opened.read() for name, opened in names.items() if opened}
    assert held == {file.name: content(get.export, file.name) for file in get.export.files.all()}
    assert all(body(get("archive.tar", Range=f"bytes={at}-{at + 699}")) == whole[at : at + 700] for at in (0, 500, 900))
    assert body(get("archive.tar", Range="bytes=1000-")) == whole[1000:]


class Killed(BaseException):
    """Kills the process: no handler runs."""


def test_after_a_killed_worker_nothing_can_be_downloaded(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, user = make_project(), make_user()
    for _ in range(5):
        make_approved(project, by=user)
    run = launch(project=project, kind="export", params={"recipe": {"formats": ["dpo"]}}, user=user)
    export = Export.objects.get(run=run)
    drive(run.pk)
    drive(run.pk)
    with monkeypatch.context() as dying:
        dying.setattr(freeze_module, "CHUNK", 2)
        dying.setattr(ItemContext, "checkpoint", _killed_at(2))
        dying.setattr(AttemptFiles, "__exit__", lambda *_: None)
        with pytest.raises(Killed):
            drive(run.pk)
    debris = files_in(storage)
    assert debris and any((storage / name).stat().st_size for name in debris)
    token = make_bearer(make_member(project, role=Role.VIEWER))
    for name in ("dpo.train.jsonl", "frozen.jsonl", "archive.tar"):
        assert Client().get(f"/api/v1/exports/{export.pk}/files/{name}", headers=token).status_code == 404
    assert not export.files.exists()

    Item.objects.filter(run=run, state=ItemState.CLAIMED).update(lease_until=timezone.now() - timedelta(seconds=1))
    reap_all()
    export = drive_export(run)
    assert export.run.state == RunState.SUCCEEDED and len(rows(export, "dpo.train.jsonl")) == 5
    assert files_in(storage) == {file.stored_as for file in export.files.all()} and not debris & files_in(storage)


def test_a_cancelled_export_leaves_no_files_and_can_be_resumed(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, user = make_project(), make_user()
    make_approved(project, by=user)
    run = launch(project=project, kind="export", params={"recipe": {"formats": ["dpo"]}}, user=user)
    drive(run.pk)
    with monkeypatch.context() as stopping:
        stopping.setattr(ItemContext, "checkpoint", _interrupted)
        drive(run.pk)
    assert not files_in(storage) and not Export.objects.get(run=run).ready
    assert drive_export(run).ready


def test_a_sample_that_changes_after_the_freeze_is_listed_not_exported() -> None:
    project, user = make_project(), make_user()
    sample, stays = make_approved(project, by=user), make_approved(project, by=user)
    run = launch(project=project, kind="export", params={"recipe": {"formats": ["dpo"]}}, user=user)
    drive(run.pk)
    approve(sample, by=user, pick="opponent")
    export = drive_export(run)
    assert reasons(export) == {str(sample.pk): "changed"}
    assert [row["sample"] for row in rows(export, "frozen.jsonl") if row["rows"]] == [str(stays.pk)]


@pytest.mark.parametrize(("stored", "words"), [(None, "is missing in storage"), (b"{}\n", "its sha256 differs")])
def test_a_lost_or_changed_file_is_not_copied(tmp_path: Path, stored: bytes | None, words: str) -> None:
    project = make_project()
    make_approved(project)
    file = export_of(project, {"formats": ["dpo"]}).files.get(name="dpo.train.jsonl")
    default_storage.delete(file.stored_as)
    if stored is not None:
        default_storage.save(file.stored_as, ContentFile(stored))
    with pytest.raises(DamagedFile, match=words):
        copy_checked(file, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _killed_at(call: int) -> Callable[[ItemContext], None]:
    calls = itertools.count(1)

    def checkpoint(context: ItemContext) -> None:
        if next(calls) == call:
            raise Killed

    return checkpoint


def _interrupted(context: ItemContext) -> None:
    raise Interrupted("the run was stopped")
