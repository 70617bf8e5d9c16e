"""Parts of an archive or a Parquet file that cannot be read, or not beside others, are named, and the rest is read."""

import io
import tarfile
import zipfile
from pathlib import Path

import duckdb
import pytest

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
