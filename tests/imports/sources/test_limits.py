"""Packed sources that would become too large: refused with the limit's name, in memory that does not grow with them."""

import gzip
import io
import json
import resource
import tarfile
from pathlib import Path

import duckdb
import pytest
from pytest_django import Settings

from curation.duels.models import Prompt
from curation.imports.sources import archive
from curation.imports.sources.open import open_path
from curation.imports.sources.rows import BadRow, SourceError, SourcePosition, SourceRow
from curation.runs.control import retry_failed
from curation.runs.models import RunState
from tests.factories import make_project
from tests.imports.bringing import as_lines, bad_rows, chat, end, start, zipped

MB = 1024 * 1024


def parquet(folder: Path, select: str) -> Path:
    path = folder / "rows.parquet"
    duckdb.sql(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


def chats(rows: int, characters: int) -> str:
    """Chat rows with an answer of so many characters."""
    answer = f"{{'role': 'assistant', 'content': repeat('x', {characters})}}"
    question = "{'role': 'user', 'content': 'Task ' || i}"
    return f"SELECT 'acme__x-' || i AS instance_id, [{question}, {answer}] AS messages FROM range({rows}) r(i)"  # noqa: S608 - numbers


def stored_once(rows: int, characters: int) -> str:
    """Rows whose long text Parquet stores once."""
    return f"SELECT i AS id, repeat('x', {characters}) AS t FROM range({rows}) r(i)"  # noqa: S608 - numbers


@pytest.fixture
def small_sources_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio counts from 1 MB on."""
    monkeypatch.setattr(archive, "UNCHECKED_RATIO", MB)


BOMBS = {
    "gzip": gzip.compress(b'{"a": "' + b"x" * (8 * MB) + b'"}\n'),
    "zip": zipped({"a.json": b'"' + b"x" * (8 * MB) + b'"'}),
}


@pytest.mark.parametrize("form", ["gzip", "zip", "parquet"])
class TestBombs:
    def bomb(self, form: str, folder: Path) -> Path:
        if form == "parquet":
            return parquet(folder, stored_once(80, MB // 10))
        path = folder / form
        path.write_bytes(BOMBS[form])
        return path

    def test_the_ratio_is_limited_by_its_setting(self, form: str, tmp_path: Path, small_sources_too: None) -> None:
        with pytest.raises(SourceError, match=r"more than 200 times its size \(MAX_UNPACK_RATIO\)"):
            self.read(self.bomb(form, tmp_path))

    def test_the_size_is_limited_by_its_setting(self, form: str, tmp_path: Path, settings: Settings) -> None:
        settings.MAX_UNPACKED_BYTES = 2 * MB
        with pytest.raises(SourceError, match=r"more than 2 MB \(MAX_UNPACKED_MB\).*raise MAX_UNPACKED_MB"):
            self.read(self.bomb(form, tmp_path))

    def test_below_the_limits_it_is_read(self, form: str, tmp_path: Path, settings: Settings) -> None:
        settings.MAX_UNPACK_RATIO = 100_000
        assert self.read(self.bomb(form, tmp_path))

    def read(self, path: Path) -> int:
        with open_path(path) as source:
            return sum(1 for _ in source.reader.rows(SourcePosition()))


def test_rows_that_parquet_stores_once_are_read_in_flat_memory(tmp_path: Path, settings: Settings) -> None:
    """400 MB of rows in a file of some kilobytes, whose metadata names a megabyte."""
    settings.MAX_UNPACK_RATIO = 100_000
    path = parquet(tmp_path, stored_once(400, MB))
    assert path.stat().st_size < MB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read = 0
    with open_path(path) as source:
        for row in source.reader.rows(SourcePosition()):
            assert not isinstance(row, BadRow) and row.offset == read
            read += 1
    assert read == 400
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1300 * 1024


def test_a_tar_archive_with_a_sparse_file_of_a_terabyte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "holes.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as packed:
        entry = tarfile.TarInfo("rows.jsonl")
        entry.size, entry.pax_headers = 1, {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**40)}
        packed.addfile(entry, io.BytesIO(b"{"))
    with pytest.raises(SourceError, match="MAX_UNPACKED_MB"), open_path(path):
        pass


def test_only_the_long_row_of_a_parquet_file_is_bad(tmp_path: Path, settings: Settings) -> None:
    settings.MAX_LINE_BYTES = MB
    path = parquet(tmp_path, "SELECT i, repeat('x', CASE WHEN i = 7 THEN 5000000 ELSE 10 END) AS t FROM range(20) r(i)")
    with open_path(path) as source:
        bad = [row for row in source.reader.rows(SourcePosition()) if isinstance(row, BadRow)]
    assert [(row.offset, row.reason) for row in bad] == [(7, "longer than 1 MB (the server's limit for one row)")]


def test_a_row_of_millions_of_tiny_values_is_bad_and_a_text_with_as_many_commas_is_not(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    text = b'{"t": "' + b'a\\",' * 1_500_000 + b'"}\n'
    path.write_bytes(b'{"a": [' + b"{}," * 1_500_000 + b"{}]}\n" + text)
    with open_path(path) as source:
        first, second = source.reader.rows(SourcePosition())
    assert isinstance(first, BadRow) and first.reason == "more than 1,000,000 values (the limit for one row)"
    assert isinstance(second, SourceRow)


def test_an_archive_of_too_many_files_is_refused_before_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LONGEST_DIRECTORY", 5000)
    path = tmp_path / "many.zip"
    path.write_bytes(zipped({f"{number}.json": b"{}" for number in range(200)}))
    with pytest.raises(SourceError, match="lists too many files"), open_path(path):
        pass


@pytest.mark.django_db(transaction=True)
class TestImport:
    def test_of_a_gzip_file_beyond_the_limit_nothing_is_imported(self, settings: Settings) -> None:
        settings.MAX_UNPACKED_BYTES = MB
        content = gzip.compress(as_lines([chat(number, note="x" * 1000) for number in range(2000)]))
        run = end(start(make_project(), "turns", content, "turns.jsonl.gz"))
        assert run.state == RunState.FAILED
        assert "MAX_UNPACKED_MB" in run.error and "Nothing of it is imported." in run.error
        assert Prompt.objects.count() == 0

    @pytest.mark.parametrize("strict", [False, True])
    def test_of_parquet_the_rows_before_the_limit_stay_unless_it_is_strict(
        self, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, strict: bool
    ) -> None:
        monkeypatch.setattr("curation.imports.row_kinds.MOST_ROWS", 10)
        settings.MAX_UNPACKED_BYTES = MB
        content = parquet(tmp_path, chats(100, 20_000)).read_bytes()
        run = end(start(make_project(), "turns", content, "turns.parquet", strict=strict))
        assert run.state == RunState.FAILED and "The rows before the limit are imported" in run.error
        before = Prompt.objects.count()
        assert before == (0 if strict else 52)
        end(retry_failed(run=run, user=None))  # the limit counts earlier reads
        assert (run.state, Prompt.objects.count()) == (RunState.FAILED, before)
        settings.MAX_UNPACKED_BYTES = 50 * MB
        end(retry_failed(run=run, user=None))
        assert (run.state, run.result["rows"], Prompt.objects.count()) == (RunState.SUCCEEDED, 100, 100)

    @pytest.mark.parametrize("depth", [200, 900, 5000])
    def test_deep_nesting_is_a_bad_row_or_none(self, depth: int) -> None:
        deep = json.dumps(chat(1))[:-1] + ', "meta": ' + '{"a": ' * depth + "1" + "}" * depth + "}"
        run = end(start(make_project(), "turns", as_lines([chat(0), deep, chat(2)])))
        assert run.state == RunState.SUCCEEDED, run.error
        assert Prompt.objects.count() + len(bad_rows(run)) == 3
