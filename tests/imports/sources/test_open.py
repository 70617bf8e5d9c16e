"""Hostile and odd files: each is read to the end in bounded memory, and bad rows are named by number."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import duckdb
import pytest
from django.conf import LazySettings

from curation.imports.sources.open import open_path
from curation.imports.sources.rows import BadRow, SourceError, SourcePosition, SourceRow

ROWS = [{"id": number, "text": f'a "quoted" [text], {{{number}}} \\ ü'} for number in range(700)]


def written(folder: Path, content: bytes, name: str = "rows") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def read(path: Path, start: SourcePosition = SourcePosition()) -> list[SourceRow | BadRow]:  # noqa: B008 - frozen
    with open_path(path) as source:
        return list(source.reader.rows(start))


def values(rows: list[SourceRow | BadRow]) -> list[object]:
    return [row.value for row in rows if isinstance(row, SourceRow)]


def reasons(rows: list[SourceRow | BadRow]) -> dict[int, str]:
    """Number as people count → reason."""
    return {row.offset + 1: row.reason for row in rows if isinstance(row, BadRow)}


def as_lines(rows: list[dict[str, object]], end: str = "\n") -> bytes:
    return "".join(json.dumps(row) + end for row in rows).encode()


def as_parquet(folder: Path, select: str, name: str = "rows.parquet") -> Path:
    path = folder / name
    duckdb.sql(f"COPY ({select}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return path


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (as_lines(ROWS), "JSON lines"),
        (as_lines(ROWS, "\r\n"), "JSON lines"),
        (b"\xef\xbb\xbf" + as_lines(ROWS), "JSON lines"),
        (as_lines(ROWS).rstrip(), "JSON lines"),
        (gzip.compress(as_lines(ROWS), mtime=0), "JSON lines"),
        (json.dumps(ROWS).encode(), "JSON array"),
        (b"\xef\xbb\xbf \n" + json.dumps(ROWS, indent=2).encode() + b"\n", "JSON array"),
        (gzip.compress(json.dumps(ROWS).encode(), mtime=0), "JSON array"),
    ],
    ids=["lines", "crlf", "bom", "no last newline", "gzip", "array", "bom and indented array", "gzip array"],
)
def test_every_text_format_has_the_same_rows(tmp_path: Path, content: bytes, format: str) -> None:
    path = written(tmp_path, content)

    rows = read(path)

    assert values(rows) == ROWS
    assert [row.offset for row in rows] == list(range(700))
    with open_path(path) as source:
        assert source.reader.format == format
        assert source.reader.count() == 700
        assert values(list(source.reader.window(510, 5))) == ROWS[510:515]
        assert values(list(source.reader.window(2, 3))) == ROWS[2:5]


def test_parquet_is_read_in_windows_with_its_nested_rows_and_times(tmp_path: Path) -> None:
    path = as_parquet(
        tmp_path,
        "SELECT 'i' || i AS instance_id, [{'role': 'user', 'content': 'c' || i}] AS messages, "
        "now() AS at, 1.5::DECIMAL(4, 2) AS price FROM range(5000) t(i)",
    )

    with open_path(path) as source:
        assert source.reader.format == "Parquet"
        assert source.reader.count() == 5000
        window = values(list(source.reader.window(4998, 10)))
        assert [row["messages"] for row in window] == [  # type: ignore[index]
            [{"role": "user", "content": "c4998"}],
            [{"role": "user", "content": "c4999"}],
        ]
        assert [row.offset for row in source.reader.rows(SourcePosition(0))] == list(range(5000))


@pytest.mark.parametrize("form", [as_lines(ROWS), json.dumps(ROWS).encode(), json.dumps(ROWS, indent=1).encode()])
def test_reading_goes_on_exactly_after_any_row(tmp_path: Path, form: bytes) -> None:
    path = written(tmp_path, form)
    whole = read(path)

    for stop in (0, 1, 257, 698, 699):
        assert values(read(path, whole[stop].after)) == ROWS[stop + 1 :]
        assert reasons(read(path, whole[stop].after)) == {}


def test_bad_lines_are_named_with_number_and_reason_and_the_others_are_read(tmp_path: Path) -> None:
    content = b"\n".join(
        [
            b'{"ok": 1}',
            b"not json",
            b"",
            b'{"a": "\x00"}',
            b'{"a": "\xff"}',
            b"[1, 2]",
            b'"text"',
            b'{"a": ' + b"[" * 100_000,
            b'{"ok": 2}',
            b'{"cut": "of',
        ]
    )

    rows = read(written(tmp_path, content))

    assert values(rows) == [{"ok": 1}, {"ok": 2}]
    found = reasons(rows)
    assert sorted(found) == [2, 4, 5, 6, 7, 8, 10]
    assert "not JSON" in found[2] and "NUL byte" in found[4] and "not UTF-8: byte 0xff" in found[5]
    assert found[6] == "not an object but a list"
    assert "not JSON" in found[10]


@pytest.mark.parametrize("array", [False, True])
def test_a_line_of_50_mb_is_one_bad_row_and_takes_no_memory(
    tmp_path: Path, settings: LazySettings, array: bool
) -> None:
    settings.MAX_LINE_BYTES = 1024 * 1024
    path = tmp_path / "rows"
    with path.open("wb") as file:
        file.write(b'[{"ok": 1},\n' if array else b'{"ok": 1}\n')
        file.write(b'{"a": "')
        for _ in range(50):
            file.write(b"x" * 1024 * 1024)
        file.write(b'"},{"ok": 2}]' if array else b'"}\n{"ok": 2}\n')

    tracemalloc.start()
    rows = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert values(rows) == [{"ok": 1}, {"ok": 2}]
    assert reasons(rows) == {2: f"longer than 1 MB (the server's limit for one {'record' if array else 'line'})"}
    assert peak < 8 * 1024 * 1024


@pytest.mark.parametrize(
    ("content", "good", "number", "reason"),
    [
        (b'[{"a": 1}, {"a": 2', 1, 2, "cut off"),
        (b'[{"a": 1}, {"a": 2}', 1, 2, "cut off"),
        (b'[{"a": 1}] {"a": 2}', 1, 2, "after the end of the array"),
        (b'[{"a": 1},, {"a": 2}]', 2, 2, "no record between"),
        (b'[{"a": 1}, {"a" 3}, 4]', 1, 2, "not JSON"),
    ],
)
def test_an_error_of_an_array_is_reported_at_its_position(
    tmp_path: Path, content: bytes, good: int, number: int, reason: str
) -> None:
    rows = read(written(tmp_path, content))

    assert len(values(rows)) == good
    assert reason in reasons(rows)[number]


def test_a_damaged_gzip_is_read_up_to_the_damage(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(as_lines(ROWS))[:-300])

    rows = read(path)

    assert 0 < len(values(rows)) < 700
    last = max(reasons(rows))
    assert "gzip file is cut off" in reasons(rows)[last]
    assert read(path, rows[-1].after) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        ("[{}]".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04 zip", "ZIP"),
        (b"\xfd7zXZ\x00 xz", "other than gzip"),
        (b"PAR1 but nothing more", "as Parquet"),
        (gzip.compress(b"PK\x03\x04", mtime=0), "ZIP"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_words(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        read(written(tmp_path, content))


def test_one_object_may_be_nested_as_deeply_as_a_line(tmp_path: Path) -> None:
    tower = b'{"a":\n' * 500 + b'"b\\nc"' + b"}\n" * 500
    (found,) = values(read(written(tmp_path, tower)))
    inner: Any = found
    for _ in range(500):
        inner = inner["a"]
    assert inner == "b\nc"


def test_gzip_files_in_a_row_are_read_as_one(tmp_path: Path) -> None:
    assert values(read(written(tmp_path, gzip.compress(b'{"a": 1}\n') + gzip.compress(b'{"a": 2}\n')))) == [
        {"a": 1},
        {"a": 2},
    ]


def test_a_parquet_file_cannot_lead_duckdb_to_another_file(tmp_path: Path) -> None:
    as_parquet(tmp_path, "SELECT 1 AS a", "a.parquet")
    path = tmp_path / "[a].parquet"
    path.write_bytes(as_parquet(tmp_path, "SELECT 2 AS a", "b.parquet").read_bytes())

    assert values(read(path)) == [{"a": 2}]


@pytest.mark.parametrize(
    ("content", "name", "format"),
    [
        (b'prompt,answer\r\n"a ""b""","c,\nd"\r\n,2\r\n', "rows", "CSV"),
        (b'\xef\xbb\xbf"prompt";answer\n"a ""b""";"c,\nd"\n;2\n', "rows", "CSV"),
        (b'prompt\tanswer\n"a ""b"""\t"c,\nd"\n\t2', "rows", "TSV"),
        (gzip.compress(b'prompt,answer\n"a ""b""","c,\nd"\n\n,2\n', mtime=0), "rows.csv.gz", "CSV"),
    ],
    ids=["crlf", "semicolons and bom", "tabs", "gzip and a blank line"],
)
def test_a_table_is_read_by_its_header(tmp_path: Path, content: bytes, name: str, format: str) -> None:
    path = written(tmp_path, content, name)
    rows = read(path)
    assert values(rows) == [{"prompt": 'a "b"', "answer": "c,\nd"}, {"prompt": None, "answer": "2"}]
    assert read(path, rows[0].after) == rows[1:]
    with open_path(path) as source:
        assert source.reader.format == format
        last = rows[-1].offset
        assert (source.reader.count(), list(source.reader.window(last, 1))) == (last + 1, rows[-1:])


def test_cells_of_json_are_values_and_bad_records_are_named(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hi, there"}]
    cell = json.dumps(messages).replace('"', '""')
    path = written(tmp_path, f'messages,note\n"{cell}",[draft\na,b,c\n'.encode() + b'\xff,1\nx,y\nz,"open\n')
    rows = read(path)
    assert values(rows) == [{"messages": messages, "note": "[draft"}, {"messages": "x", "note": "y"}]
    assert reasons(rows) == {
        2: "of 3 cells, and the header has 2",
        3: "not UTF-8",
        5: "not CSV: unexpected end of data. The rest of the file is not read",
    }


@pytest.mark.parametrize(
    ("content", "said"), [(b"a,a\n1,2\n", "two columns with the name 'a'"), (b"a,\n1,2\n", "a column without a name")]
)
def test_a_table_whose_columns_have_no_own_names_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(SourceError, match=said), open_path(written(tmp_path, content)):
        pass


def test_one_column_is_a_table_by_its_name(tmp_path: Path) -> None:
    assert values(read(written(tmp_path, b"text\nhello\n", "rows.csv"))) == [{"text": "hello"}]


def test_a_record_that_does_not_end_takes_no_memory(tmp_path: Path, settings: LazySettings) -> None:
    settings.MAX_LINE_BYTES = 2_000
    rows = read(written(tmp_path, b"a,b\n1,2\n" + b'"x\ny",' * 1_000_000))
    assert values(rows) == [{"a": "1", "b": "2"}]
    assert reasons(rows) == {2: "not CSV: a record is longer than 2,000 bytes. The rest of the file is not read"}


def test_json_lines_with_a_damaged_first_line_are_no_table(tmp_path: Path) -> None:
    rows = read(written(tmp_path, b'"a": 1, "b": 2}\n{"a": 1, "b": 2}\n'))
    assert values(rows) == [{"a": 1, "b": 2}] and list(reasons(rows)) == [1]


def test_a_cell_of_very_many_values_is_not_read_as_json(tmp_path: Path) -> None:
    cell = "[" + "[]," * 2_000_000 + "[]]"
    [row] = read(written(tmp_path, f'a,b\n"{cell}",1\n'.encode(), "rows.csv"))
    assert isinstance(row, BadRow) or row.value["a"] == cell
