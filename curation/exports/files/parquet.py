"""Lines of JSON as a Parquet file. The same lines give the same bytes.

DuckDB reads the lines one after the other, so memory stays flat. Imported where a Parquet file is written.
"""

import json
import shutil
import tempfile
from typing import IO, TYPE_CHECKING, Protocol

import duckdb

if TYPE_CHECKING:
    from curation.exports.formats.row import Column, Columns

# Uncompressed, of a row group.
_GROUP = "8MB"
_SCALARS = {"string": "VARCHAR", "bool": "BOOLEAN", "int64": "BIGINT", "float64": "DOUBLE", "image": "VARCHAR"}


class ParquetTarget(Protocol):
    def write(self, data: bytes) -> int: ...


def write_parquet(lines: IO[bytes], target: ParquetTarget, columns: "Columns", longest: int) -> None:
    """Write one row for each line; the longest has `longest` bytes. `lines` is a file on the disk.

    `json` values are text in the file; its metadata tell `datasets` to parse them.
    """
    lines.flush()
    features = {"info": {"features": {name: _feature(column) for name, column in columns.items()}}}
    read = ", ".join(f"{_text(name)}: {_text(_type(column, json='JSON'))}" for name, column in columns.items())
    written = ", ".join(
        f"{_name(name)}::{_type(column, json='VARCHAR')} AS {_name(name)}" for name, column in columns.items()
    )
    # Both files have no name, so that nothing remains of them if the process is killed.
    with tempfile.TemporaryFile() as file, duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("SET temp_directory = ''")
        copy = (
            f"COPY (SELECT {written} FROM read_json({_path(lines)}, columns = {{{read}}}, format = 'newline_delimited',"  # noqa: S608
            f" compression = 'uncompressed', maximum_object_size = {longest + 1})) TO {_path(file)}"
            f" (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE_BYTES '{_GROUP}', USE_TMP_FILE false,"
            f" KV_METADATA {{huggingface: {_text(json.dumps(features))}}})"
        )
        connection.execute(copy)
        shutil.copyfileobj(file, target)


def _type(column: "Column", *, json: str) -> str:
    if isinstance(column, str):
        return json if column == "json" else _SCALARS[column]
    if isinstance(column, list):
        return f"{_type(column[0], json=json)}[]"
    return f"STRUCT({', '.join(f'{_name(name)} {_type(part, json=json)}' for name, part in column.items())})"


def _feature(column: "Column") -> object:
    """Return the type in the words of `datasets.Features`."""
    if isinstance(column, str):
        kind = {"json": "Json", "image": "Image"}.get(column)
        return {"_type": kind} if kind else {"dtype": column, "_type": "Value"}
    if isinstance(column, list):
        return {"feature": _feature(column[0]), "_type": "List"}
    return {name: _feature(part) for name, part in column.items()}


def _path(file: IO[bytes]) -> str:
    return f"'/dev/fd/{file.fileno()}'"


def _name(name: str) -> str:
    return f'"{name.replace(chr(34), chr(34) * 2)}"'


def _text(text: str) -> str:
    return f"'{text.replace(chr(39), chr(39) * 2)}'"
