"""The results of an import: rows once, bad rows named, figures true, also after a worker was killed."""

from typing import Any

import pytest
from pytest_django import Settings

from curation.duels.models import Prompt
from curation.imports import kinds, row_kinds
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Item, ItemState, Run, RunState
from curation.web.problems import Invalid
from tests.factories import make_project
from tests.imports.bringing import as_lines, bad_rows, bring, chat, end, start, upload

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """Ends the worker without a word, as SIGKILL does: nothing behind it is run."""


def test_good_rows_go_in_and_bad_rows_are_listed_with_their_line() -> None:
    run = bring(make_project(), "turns", [chat(1, 2), "{broken", "", {"text": "no messages"}, chat(2)])

    assert run.state == RunState.SUCCEEDED
    assert Prompt.objects.count() == 3
    assert {key: run.result[key] for key in ("rows", "bad_rows", "prompts", "duplicates", "format", "source")} == {
        "rows": 4,
        "bad_rows": 2,
        "prompts": 3,
        "duplicates": 0,
        "format": "JSON lines",
        "source": "turns.jsonl",
    }
    found = bad_rows(run)
    assert list(found) == ["row 2", "row 4"]
    assert "not JSON" in found["row 2"]
    assert "messages, conversations is needed, the row has text" in found["row 4"]
    assert (run.items_total, run.items_done, run.items_skipped) == (3, 1, 2)


def test_strict_takes_nothing_where_one_row_is_bad_and_says_which() -> None:
    project = make_project()

    run = bring(project, "turns", [chat(1), chat(2), "{broken"], strict=True)

    assert (run.state, Prompt.objects.count()) == (RunState.FAILED, 0)
    assert "1 row is bad and the import is strict. Row 3: not JSON" in run.error
    assert list(bad_rows(run)) == ["row 3"]

    run = bring(project, "turns", [chat(1), chat(2)], strict=True)
    assert (run.state, run.result["prompts"], run.result["rows"]) == (RunState.SUCCEEDED, 2, 2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": 1}\n{"a": 2}\n', "None of the 2 rows could be imported. Row 1: no messages"),
        (b"[]", "The source has no rows."),
        (b"\n\n", "The source has no rows."),
        (b"PK\x03\x04", "ZIP archive"),
    ],
)
def test_a_file_without_any_good_row_fails_in_words(content: bytes, said: str) -> None:
    run = bring(make_project(), "turns", content)

    assert run.state == RunState.FAILED
    assert said in run.error


def test_an_empty_upload_is_refused_at_once() -> None:
    with pytest.raises(Invalid, match="empty"):
        upload(make_project(), b"")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("options", [{}, {"count": 60, "windows": 6, "window_size": 3}])
def test_a_killed_worker_loses_no_row_and_doubles_none(
    monkeypatch: pytest.MonkeyPatch, strict: bool, options: dict[str, int]
) -> None:
    """Killed after every single chunk, before and after its commit, the import ends with the same rows."""
    monkeypatch.setattr(row_kinds, "MOST_ROWS", 3)
    rows: list[Any] = [chat(number, 3) for number in range(24)]
    if not strict:
        rows.insert(12, "{broken")
    whole = make_project()
    bring(whole, "turns", rows, options=options)
    expected = keys_of(whole)

    project = make_project()
    run = start(project, "turns", as_lines(rows), strict=strict, options=options)
    kills = 0
    commit = kinds._commit

    def dying(*args: Any) -> None:
        nonlocal kills
        kills += 1
        if kills % 2:
            raise Killed  # before anything of the chunk is written
        commit(*args)
        raise Killed  # right after its commit

    while Run.objects.get(pk=run.pk).state in ("queued", "running") and kills < 500:
        with monkeypatch.context() as patched:
            patched.setattr(kinds, "_commit", dying)
            try:
                drive(run.pk)
            except Killed:
                give_back(run)
    run.refresh_from_db()

    assert kills > 10
    assert run.state == RunState.SUCCEEDED
    assert keys_of(project) == expected
    assert run.result["prompts"] == len(expected)
    assert run.result["bad_rows"] == len(bad_rows(run)) <= 1


def keys_of(project: Any) -> set[tuple[str, int, int]]:
    return {(row.instance_id, row.row_offset, row.turn_index) for row in Prompt.objects.of(project)}


def give_back(run: Run) -> None:
    """The reaper's work once the lease of the dead worker has lapsed."""
    Item.objects.filter(run=run, state=ItemState.CLAIMED).update(state=ItemState.PENDING, lease_owner="", claims=0)


def test_only_so_many_bad_rows_are_listed_but_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "LISTED_BAD_ROWS", 20)
    monkeypatch.setattr(row_kinds, "MOST_ROWS", 15)

    run = bring(make_project(), "turns", [*(["{"] * 50), chat(1)])

    assert run.result["bad_rows"] == 50
    assert list(bad_rows(run)) == [f"row {number}" for number in range(1, 21)]


def test_a_cancelled_import_stops_between_chunks_and_goes_on_when_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_kinds, "MOST_ROWS", 5)
    project = make_project()
    run = start(project, "turns", as_lines([chat(number) for number in range(20)]))
    commit = kinds._commit

    def cancelling(context: Any, *args: Any) -> None:
        commit(context, *args)
        Run.objects.filter(pk=run.pk).update(state=RunState.CANCELLED)
        context._heartbeat.stopped = True

    with monkeypatch.context() as patched:
        patched.setattr(kinds, "_commit", cancelling)
        drive(run.pk)
    assert Prompt.objects.count() == 5

    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert end(run).result["prompts"] == 20
    assert Prompt.objects.count() == 20


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"kind": "poems"}, "kind"),
        ({"options": {"cuont": 3}}, "options.cuont"),
        ({"options": {"count": 0}}, "options.count"),
        ({"upload": "", "source": ""}, "source"),
        ({"upload": "", "source": "ftp://example.org/a"}, "source"),
        ({"upload": "", "source": "/etc/passwd"}, "source"),
        ({"upload": "", "source": "s3://bucket/a.parquet"}, "source"),
    ],
)
def test_what_cannot_work_is_refused_at_launch(params: dict[str, Any], path: str) -> None:
    project = make_project()
    given = {"kind": "turns", "upload": upload(project, b"{}"), **params}

    with pytest.raises(Invalid) as refused:
        launch(project=project, kind="import", params=given, user=None)

    assert [error.path for error in refused.value.errors] == [path]
    assert Run.objects.count() == 0


def test_run_parameters_cannot_name_another_projects_upload() -> None:
    key = upload(make_project(), as_lines([chat(1)]))
    mine = make_project()

    for other in (key, f"uploads/{mine.pk}/../../{key}", "exports/1/rows.jsonl"):
        with pytest.raises(Invalid, match="no such upload"):
            launch(project=mine, kind="import", params={"kind": "turns", "upload": other}, user=None)


def test_a_path_on_the_worker_is_read_below_allowed_folders_only(settings: Settings, tmp_path: Any) -> None:
    allowed, outside = tmp_path / "allowed", tmp_path / "outside"
    for folder in (allowed, outside):
        folder.mkdir()
        (folder / "rows.jsonl").write_bytes(as_lines([chat(1)]))
    (allowed / "link.jsonl").symlink_to(outside / "rows.jsonl")
    settings.IMPORT_FOLDERS = [str(allowed)]
    project = make_project()

    params = {"kind": "turns", "source": str(allowed / "rows.jsonl")}
    run = launch(project=project, kind="import", params=params, user=None)
    assert end(run).result["source"] == "rows.jsonl"
    assert Prompt.objects.count() == 1
    for bad in (outside / "rows.jsonl", allowed / "link.jsonl", allowed / ".." / "outside" / "rows.jsonl"):
        with pytest.raises(Invalid, match="may not be read"):
            launch(project=project, kind="import", params={"kind": "turns", "source": str(bad)}, user=None)
