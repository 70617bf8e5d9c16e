"""Lines of JSON as a Parquet file, in batches, so that memory stays flat. The same lines give the same bytes.

Imported where a Parquet file is written: loading pyarrow takes time and 60 MB of memory.
"""

import json
from collections.abc import Callable, Iterator
from typing import IO, Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from curation.exports.formats.row import Column, Columns

# Uncompressed bytes of a row group.
_GROUP = 8 * 1024 * 1024
_SCALARS = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}
Encode = Callable[[Any], Any]


class Target(Protocol):
    """What pyarrow needs of a file to write to."""

    closed: bool

    def write(self, data: bytes) -> int: ...

    def flush(self) -> None: ...


def write_parquet(lines: IO[bytes], target: Target, columns: Columns) -> None:
    """Write one row for each line. `json` values are text in the file; its metadata tell `datasets` to parse them."""
    features = {"info": {"features": {name: _feature(column) for name, column in columns.items()}}}
    schema = pa.schema(
        [pa.field(name, _arrow_type(column)) for name, column in columns.items()],
        metadata={"huggingface": json.dumps(features)},
    )
    encode = _encoder(dict(columns))
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for group in _groups(lines):
            rows = [encode(orjson.loads(line)) for line in group]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _groups(lines: IO[bytes]) -> Iterator[list[bytes]]:
    while group := lines.readlines(_GROUP):
        yield group


def _arrow_type(column: Column) -> pa.DataType:
    if isinstance(column, str):
        return pa.string() if column == "json" else _SCALARS[column]
    if isinstance(column, list):
        return pa.list_(_arrow_type(column[0]))
    return pa.struct([pa.field(name, _arrow_type(part)) for name, part in column.items()])


def _feature(column: Column) -> object:
    """Return the type in the words of `datasets.Features`."""
    if isinstance(column, str):
        return {"_type": "Json"} if column == "json" else {"dtype": column, "_type": "Value"}
    if isinstance(column, list):
        return {"feature": _feature(column[0]), "_type": "List"}
    return {name: _feature(part) for name, part in column.items()}


def _encoder(column: Column) -> Encode:
    """Return a function that turns the `json` parts of a value into text. Missing values stay None."""
    if not _has_json(column):
        return lambda value: value
    if isinstance(column, str):
        return lambda value: None if value is None else orjson.dumps(value).decode()
    if isinstance(column, list):
        item = _encoder(column[0])
        return lambda value: None if value is None else [item(part) for part in value]
    parts = {name: _encoder(part) for name, part in column.items() if _has_json(part)}
    return lambda value: value and {**value, **{name: encode(value.get(name)) for name, encode in parts.items()}}


def _has_json(column: Column) -> bool:
    if isinstance(column, str):
        return column == "json"
    return any(map(_has_json, column if isinstance(column, list) else column.values()))
