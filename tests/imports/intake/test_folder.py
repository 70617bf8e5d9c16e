"""The watched folder: files are taken once, and a bad one is named with the reason."""

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from curation.duels.models import Prompt
from curation.imports.intake import folder
from curation.imports.intake.folder import take_files
from curation.projects.models import AuditEntry, Project
from curation.runs.models import Run
from tests.factories import make_project
from tests.imports.bringing import as_lines, chat, end

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def watched(tmp_path: Path, settings: Settings) -> Path:
    settings.WATCH_FOLDER = tmp_path / "watched"
    (tmp_path / "watched" / "acme" / "pr_records").mkdir(parents=True)
    return tmp_path / "watched" / "acme"


@pytest.fixture
def project() -> Project:
    return make_project("acme")


def put(path: Path, content: bytes, age: int = 60) -> None:
    path.write_bytes(content)
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))


def names(at: Path) -> list[str]:
    return sorted(path.name for path in at.iterdir()) if at.exists() else []


def test_a_file_is_imported_as_its_folder_says_and_moved(watched: Path, project: Project) -> None:
    put(watched / "turns.jsonl", as_lines([chat(1), "{broken"]))
    put(watched / "pr_records" / "prs.jsonl", as_lines([{"instance_id": "a__b-1", "repo": "a/b", "issue": "It fails"}]))

    runs = take_files()

    assert [run.params["kind"] for run in runs] == ["turns", "pr_records"]
    assert end(runs[0]).result["bad_rows"] == 1
    assert (runs[0].result["source"], Prompt.objects.count()) == ("turns.jsonl", 1)
    assert names(watched) == ["done", "pr_records"]
    assert names(watched / "done") == ["turns.jsonl"]
    assert names(watched / "pr_records" / "done") == ["prs.jsonl"]
    assert take_files() == []


def test_a_process_that_dies_before_the_move_makes_no_second_run(
    watched: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(watched / "turns.jsonl", as_lines([chat(1)]))
    with monkeypatch.context() as killed:
        killed.setattr(folder, "_move", lambda *_: None)
        (run,) = take_files()

    assert take_files() == []

    assert names(watched / "done") == ["turns.jsonl", "turns.jsonl.reason.txt"]
    assert f"Run {run.pk} has imported" in (watched / "done" / "turns.jsonl.reason.txt").read_text()
    assert AuditEntry.objects.filter(action="intake.file").count() == 1
    Run.objects.all().delete()
    put(watched / "again.jsonl", as_lines([chat(1)]))
    assert len(take_files()) == 1


def test_unfinished_files_links_and_folders_of_no_project_are_left(
    watched: Path, project: Project, tmp_path: Path
) -> None:
    put(watched / "new.jsonl", as_lines([chat(1)]), age=0)
    put(watched / "half.jsonl.part", as_lines([chat(1)]))
    put(watched / ".hidden", as_lines([chat(1)]))
    put(tmp_path / "secret.jsonl", as_lines([chat(1)]))
    (watched / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (watched.parent / "elsewhere").mkdir()
    put(watched.parent / "elsewhere" / "turns.jsonl", as_lines([chat(1)]))

    assert take_files() == []
    assert names(watched.parent / "elsewhere") == ["turns.jsonl"]
    Project.objects.update(archived_at=project.created_at)
    put(watched / "turns.jsonl", as_lines([chat(1)]))
    assert take_files() == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("table.csv", b"a,b\n1,2\n", "The file is CSV"),
        ("empty.jsonl", b"", "The file is empty"),
        ("nothing/turns.jsonl", b"{}", "There is no import kind 'nothing'"),
    ],
)
def test_a_bad_file_is_moved_with_the_reason_beside_it(
    watched: Path, project: Project, name: str, content: bytes, said: str
) -> None:
    path = watched / name
    path.parent.mkdir(exist_ok=True)
    put(path, content)
    put(watched / "good.jsonl", as_lines([chat(1)]))

    assert len(take_files()) == 1

    failed = path.parent / "failed"
    assert names(failed) == [path.name, f"{path.name}.reason.txt"]
    assert said in (failed / f"{path.name}.reason.txt").read_text()
