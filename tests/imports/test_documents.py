"""Files in archives and folders: tables, logs and archives in them, data sets, and files longer than a row may be."""

import gzip
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pytest_django import Settings

from curation.imports.sources.archive import zstd
from curation.projects.models import Project
from curation.runs.engine.sync_stage import Interrupted
from curation.runs.launch import launch
from curation.trajectories.models import Trajectory
from tests.imports.bringing import as_lines, bad_rows, bring, end, start, zipped
from tests.imports.layouts.golden import GOLDEN
from tests.review.imports.test_trajectories import as_tar_gz, row

pytestmark = pytest.mark.django_db(transaction=True)


def as_parquet(rows: list[dict[str, Any]], path: Path) -> bytes:
    lines = path / "rows.jsonl"
    lines.write_bytes(as_lines(rows))
    file = path / "rows.parquet"
    duckdb.read_json(str(lines)).write_parquet(str(file))
    return file.read_bytes()


def files_of_a_log() -> dict[str, bytes]:
    log = json.loads((GOLDEN / "inspect" / "log.json").read_text())
    header = {name: value for name, value in log.items() if name != "samples"}
    samples = {f"samples/{one['id']}_epoch_{one['epoch']}.json": json.dumps(one).encode() for one in log["samples"]}
    return {"header.json": json.dumps(header).encode(), **samples}


@pytest.mark.parametrize("pack", [zipped, as_tar_gz])
def test_tables_logs_and_packed_files_in_an_archive_are_read(project: Project, tmp_path: Path, pack: Any) -> None:
    rows = [row(number, solved=True) for number in range(6)]
    files = {
        "a/rows.parquet": as_parquet(rows[:2], tmp_path),
        "b/rows.jsonl.gz": gzip.compress(as_lines(rows[2:4])),
        "c/rows.jsonl.zst": zstd.compress(as_lines(rows[4:5])),
        "d/rows.zip": zipped({"e/rows.jsonl": as_lines(rows[5:])}),
        "log.eval": zipped(files_of_a_log()),
        "notes.txt": b"nothing to read",
    }
    run = bring(project, "trajectories", pack(files), "all.zip")
    assert run.state == "succeeded", run.error
    chats = Trajectory.objects.filter(instance_id__startswith="acme__billing")
    assert chats.count() == 6 and Trajectory.objects.count() > 6
    assert run.result["layout"] == "Inspect log, chat rows (messages)"
    assert bad_rows(run) == {}


def test_a_bad_row_in_a_file_of_an_archive_is_named_by_its_place(project: Project, tmp_path: Path) -> None:
    inner = zipped({"x.jsonl": as_lines([{"messages": []}])})
    files = {
        "a.jsonl.gz": gzip.compress(as_lines([row(1, solved=True), "{broken"])),
        "b.zip": zipped({"c.zip": inner}),
        "d.parquet": b"PAR1 broken",
        "e.zip": b"PK\x03\x04 broken",
    }
    run = bring(project, "trajectories", zipped(files), "all.zip")
    reasons = list(bad_rows(run).values())
    assert run.result["trajectories"] == 1
    assert reasons[0].startswith("a.jsonl.gz:2: not JSON")
    assert "b.zip" in reasons[1] and "an archive in an archive in an archive is not read" in reasons[1]
    assert reasons[2].startswith("d.parquet: DuckDB cannot read") and reasons[3].startswith("e.zip: The ZIP archive is")


def test_a_file_of_lines_that_is_longer_than_a_row_may_be_is_read_to_its_end(
    project: Project, settings: Settings
) -> None:
    settings.MAX_LINE_BYTES = 4096
    rows = as_lines([row(number, solved=True) for number in range(40)])
    assert len(rows) > 3 * settings.MAX_LINE_BYTES
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.jsonl", rows)
    assert bring(project, "trajectories", packed.getvalue(), "rows.zip").result["trajectories"] == 40


@pytest.mark.parametrize("kind", ["trajectories", "samples", "turns"])
def test_a_data_set_that_was_saved_to_disk_is_read_as_a_folder(
    project: Project, tmp_path: Path, settings: Settings, kind: str
) -> None:
    datasets = pytest.importorskip("datasets")
    settings.IMPORT_FOLDERS = [str(tmp_path)]
    rows = [{**row(number, solved=True), "resolved": number % 2 == 0} for number in range(5)]
    split = datasets.Dataset.from_list(rows)
    datasets.DatasetDict(train=split, test=split.select([0])).save_to_disk(tmp_path / "set")
    run = launch_source(project, kind, tmp_path / "set")
    assert (run.state, run.result["rows"], run.result["bad_rows"]) == ("succeeded", 6, 0), run.error
    assert run.result["duplicates"] >= 1
    if kind == "trajectories":
        assert sorted(Trajectory.objects.values_list("outcome", flat=True)) == ["failed"] * 2 + ["solved"] * 3


def launch_source(project: Project, kind: str, path: Path) -> Any:
    return end(launch(project=project, kind="import", params={"kind": kind, "source": str(path)}, user=None))


def test_an_import_that_was_stopped_in_a_table_of_an_archive_goes_on_there(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.imports.row_kinds.MOST_ROWS", 2)
    rows = [row(number, solved=True) for number in range(7)]
    files = {"a.jsonl": as_lines(rows[:1]), "b.parquet": as_parquet(rows[1:], tmp_path)}
    run = start(project, "trajectories", zipped(files), "rows.zip")
    seen: list[int] = []

    def stop(*_: object) -> None:
        seen.append(Trajectory.objects.count())
        if len(seen) == 3:
            raise Interrupted("stopped")

    with monkeypatch.context() as patched:
        patched.setattr("curation.runs.engine.sync_stage.ItemContext.checkpoint", stop)
        end(run)
    assert 0 < Trajectory.objects.count() < 7
    assert end(run).result["rows"] == 7 and Trajectory.objects.count() == 7


def test_arrow_without_pyarrow_says_what_to_install(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    run = bring(project, "trajectories", b"\xff\xff\xff\xff\x10\x00\x00\x00", "data.arrow")
    assert "the extra `data`" in run.error


TURNS = b'"[{""role"": ""user"", ""content"": ""q""}, {""role"": ""assistant"", ""content"": ""a""}]"'
TABLE = b"messages,resolved\n" + TURNS + b",true\n"


@pytest.mark.parametrize(
    ("content", "name", "count"),
    [
        (as_lines([row(1, solved=True), row(2, solved=True)]), "rows.json", 2),
        (as_lines([row(1, solved=True), row(2, solved=True)]), "rows.txt", 2),
        (as_lines([row(1, solved=True)]), "rows.parquet", 1),
        (json.dumps([row(1, solved=True)], indent=1).encode(), "rows.csv", 1),
        (zipped({"rows.json": as_lines([row(1, solved=True), row(2, solved=True)])}), "rows.zip", 2),
        (b"\xef\xbb\xbf" + json.dumps(row(1, solved=True), indent=1).encode(), "rows.json", 1),
        (TABLE, "rows.csv", 1),
        (zipped({"rows.csv.gz": gzip.compress(TABLE)}), "rows.zip", 1),
    ],
)
def test_the_content_of_a_file_says_how_it_is_read(project: Project, content: bytes, name: str, count: int) -> None:
    run = bring(project, "trajectories", content, name)
    assert (run.state, run.result["trajectories"], bad_rows(run)) == ("succeeded", count, {}), run.error


@pytest.mark.parametrize("pack", ["tar", "zip", "folder"])
def test_links_of_an_archive_are_in_the_account(
    project: Project, tmp_path: Path, settings: Settings, pack: str
) -> None:
    settings.IMPORT_FOLDERS = [str(tmp_path)]
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.jsonl").write_bytes(as_lines([row(1, solved=True)]))
    (tmp_path / "set" / "b.jsonl").symlink_to("/etc/passwd")
    if pack == "folder":
        run = launch_source(project, "trajectories", tmp_path / "set")
    else:
        packed = io.BytesIO()
        if pack == "tar":
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(tmp_path / "set", "set")
        else:
            link = zipfile.ZipInfo("b.jsonl")
            link.external_attr = 0o120777 << 16
            with zipfile.ZipFile(packed, "w") as archive:
                archive.write(tmp_path / "set" / "a.jsonl", "a.jsonl")
                archive.writestr(link, "/etc/passwd")
        run = bring(project, "trajectories", packed.getvalue(), f"set.{pack}")
    said = {(entry["field"], entry["becomes"]) for entry in run.result["account"]}
    assert (run.result["trajectories"], bad_rows(run)) == (1, {})
    assert ("(files) *.jsonl", "ignored: a link or a special file") in said


@pytest.mark.parametrize(
    ("name", "end"), [("claude.jsonl", '{"type": "user", "uuid": "4", "mess'), ("codex.jsonl", "[1, 2]")]
)
def test_lines_of_a_log_that_are_cut_off_are_counted(project: Project, name: str, end: str) -> None:
    folder = GOLDEN / "agent_logs"
    log = next(folder.glob("claude/*.jsonl" if name == "claude.jsonl" else "codex/rollout*.jsonl"))
    run = bring(project, "trajectories", log.read_bytes().rstrip() + b"\n" + end.encode(), name)
    said = {entry["field"]: entry["becomes"] for entry in run.result["account"]}
    assert (run.result["unreadable"], said["(lines)"]) == (1, "ignored: they are no JSON objects")


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_numbers_that_no_database_stores_end_no_import(project: Project, name: str, tmp_path: Path) -> None:
    odd = ['"reward": 1e999', '"scores": [{"name": "a", "score": -1e999}]', '"attempt": 99999999999', '"attempt": -1']
    content = as_lines([f"{json.dumps(row(at, solved=True))[:-1]}, {value}}}" for at, value in enumerate(odd)])
    if name == "rows.parquet":
        file = tmp_path / name
        duckdb.execute(
            "COPY (SELECT [{'role': 'user', 'content': 'q'}, {'role': 'assistant', 'content': 'a'}] AS messages,"
            f" 'inf'::DOUBLE AS reward, 70000 AS attempt) TO '{file}' (FORMAT parquet)"
        )
        content = file.read_bytes()
    run = bring(project, "trajectories", content, name)
    assert (run.state, run.result["trajectories"], bad_rows(run)) == ("succeeded", 1 if "parquet" in name else 4, {})
    assert Trajectory.objects.filter(sample_index=0).count() == run.result["trajectories"]
    assert not Trajectory.objects.filter(rewards__has_key="reward").exists()
