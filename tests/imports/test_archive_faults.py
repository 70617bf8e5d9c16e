"""Parts of an archive or a Parquet file that cannot be read, or not beside others, are named, and the rest is read."""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import duckdb
import pytest

from curation.imports.kinds import ImportRun
from curation.projects.models import Project
from curation.trajectories.models import Trajectory
from tests.imports.bringing import as_lines, bad_rows, bring, zipped
from tests.imports.test_documents import files_of_a_log
from tests.review.imports.test_trajectories import row

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_sample_of_a_log_that_is_no_json_leaves_the_others(project: Project) -> None:
    files = files_of_a_log()
    first = min(name for name in files if name.startswith("samples/"))
    run = bring(project, "trajectories", zipped(files | {first: b"{"}), "log.eval")
    assert run.result["trajectories"] == len(files) - 2
    (reason,) = bad_rows(run).values()
    assert f"{first} is not JSON" in reason


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("is_tar", [False, True])
def test_files_of_one_name_in_an_archive_are_named(project: Project, is_tar: bool) -> None:
    """Programs that append to an archive write such ones."""
    packed = io.BytesIO()
    contents = [as_lines([row(number, solved=True)]) for number in (1, 2)]
    if is_tar:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for content in contents:
                about = tarfile.TarInfo("a.jsonl")
                about.size = len(content)
                tar.addfile(about, io.BytesIO(content))
    else:
        with zipfile.ZipFile(packed, "w") as archive:
            for content in contents:
                archive.writestr("a.jsonl", content)
    run = bring(project, "trajectories", packed.getvalue(), "runs.tar" if is_tar else "runs.zip")
    assert (Trajectory.objects.get(run=run).instance_id, *bad_rows(run).values()) == (
        "acme__billing-2",
        "the archive has several files of one name, of which only the last is read: a.jsonl",
    )
    assert "cut_off" not in run.result


def test_rows_of_a_damaged_part_of_a_parquet_file_are_counted(project: Project, tmp_path: Path) -> None:
    """They cannot be told apart, so they are one line of the log, and stood for one row."""
    path = tmp_path / "rows.parquet"
    said = "[{'role': 'user', 'content': md5(i::VARCHAR)}, {'role': 'assistant', 'content': 'Done.'}]"
    duckdb.sql(f"COPY (SELECT {said} AS messages FROM range(2200) r(i)) TO '{path}' (ROW_GROUP_SIZE 2048)")  # noqa: S608
    content = bytearray(path.read_bytes())
    content[1000:1500] = b"x" * 500
    run = bring(project, "samples", bytes(content), path.name)
    assert run.result["rows"] == 2200 == run.result["bad_rows"] + run.result["samples"]
    (reason,) = bad_rows(run).values()
    assert "DuckDB cannot read rows 0 to 2047" in reason and run.result["bad_rows"] == 2048
    assert str(path.parent) not in reason and "/uploads/" not in reason


@pytest.mark.parametrize("in_archive", [False, True])
@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json"])
def test_a_file_that_is_cut_off_after_a_row_says_so(project: Project, in_archive: bool, name: str) -> None:
    """The end of the run says so too, and not only one of the bad rows."""
    first, second = (as_lines([row(number, solved=True)]) for number in (1, 2))
    if name == "a.json":
        cut, reason = (
            b"[" + first + b"," + second[:20],
            "the array ends in the middle of this record; the file is cut off",
        )
    else:
        cut, reason = gzip.compress(first) + gzip.compress(second)[:10], "the gzip file is cut off here"
    run = bring(project, "trajectories", *((zipped({name: cut}), "a.zip") if in_archive else (cut, name)))
    assert run.result["trajectories"] == 1
    assert reason in "".join(bad_rows(run).values())
    said = ImportRun().conclude(run)
    assert "The rest of the file is missing: " in said and said.endswith(f"{reason}.")


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_file_without_messages_beside_a_session_is_no_bad_row(project: Project, is_inside: bool) -> None:
    """Programs write what they know of a session, such as its title, in a file beside it."""
    about = {"title": "Fix it", "git_remotes": ["a", "b"], "stats": {"turns": 2}}
    unknown = {"memory": {"content": [[{"text": "Fix it."}, []], [{"text": "Done."}, []]]}}
    chat = as_lines([row(1, solved=True)])
    inner = zipped({"s/chat.jsonl": chat, "s/summary.json": json.dumps(about), "s/unknown.json": json.dumps(unknown)})
    run = bring(project, "trajectories", zipped({"inner.zip": inner}) if is_inside else inner, "all.zip")
    before = "inner.zip/" if is_inside else ""
    said = {(entry["field"], entry["becomes"]) for entry in run.result["account"]}
    assert (f"(file) {before}s/summary.json", "ignored: it has no messages") in said
    assert (run.result["trajectories"], run.result["rows"]) == (1, 2)
    (reason,) = bad_rows(run).values()
    assert reason.startswith(f"{before}s/unknown.json: no layout of training data has the columns memory")
    alone = bring(project, "trajectories", zipped({"a.json": json.dumps(about), "b.txt": "b"}), "none.zip")
    assert "no file is read: a.json: ignored: it has no messages; b.txt: ignored: no layout reads it" in alone.error
