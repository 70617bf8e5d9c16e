"""Read Parquet with DuckDB, in blocks of rows: a window reads no more than its row groups."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from curation.imports.sources.rows import BadRow, Position, Row, SourceError
from curation.imports.sources.text_rows import Raw, decode

BLOCK_BYTES = 16 * 1024 * 1024
MOST_ROWS = 2048
MEMORY = "1GB"


@dataclass(frozen=True, slots=True)
class _File:
    """One Parquet file of the source and the offset of its first row."""

    path: str
    first: int
    rows: int


class ParquetReader:
    """`where` is a local path, or an `hf://` or `s3://` address, possibly with a glob; files are read in order of name.

    `connection` comes from `connect_local` or `connect_remote`. Raises `SourceError` if DuckDB cannot read the source.
    """

    format = "Parquet"

    def __init__(self, connection: duckdb.DuckDBPyConnection, where: str, longest: int) -> None:
        self._connection = connection
        self._longest = longest
        self._files: list[_File] = []
        try:
            found = connection.execute(
                "SELECT file_name, num_rows FROM parquet_file_metadata(?) ORDER BY file_name", [where]
            ).fetchall()
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [where]).fetchall()
            sizes = connection.execute(
                "SELECT coalesce(sum(total_uncompressed_size), 0) FROM parquet_metadata(?)", [where]
            ).fetchone()
        except duckdb.Error as error:
            raise SourceError(f"DuckDB cannot read it as Parquet: {first_line(error)}") from None
        self.columns = [str(row[0]) for row in described]
        total = 0
        for name, rows in found:
            self._files.append(_File(str(name), total, int(rows)))
            total += int(rows)
        self._total = total
        row_bytes = max(1, int(sizes[0] if sizes else 0) // max(1, total))
        self._block = max(1, min(MOST_ROWS, BLOCK_BYTES // row_bytes))

    def count(self) -> int:
        return self._total

    def listing_digest(self) -> str:
        """A digest of the files' names and row counts, for a source that is not read as a whole."""
        listing = "\n".join(f"{file.path} {file.rows}" for file in self._files)
        return hashlib.sha256(listing.encode()).hexdigest()

    def rows(self, start: Position) -> Iterator[Row | BadRow]:
        yield from self.window(start.offset, self._total - start.offset)

    def window(self, start: int, length: int) -> Iterator[Row | BadRow]:
        end = start + length
        for file in self._files:
            low, high = max(start, file.first), min(end, file.first + file.rows)
            for begin in range(low, high, self._block):
                yield from self._read(file, begin, min(self._block, high - begin))

    def _read(self, file: _File, start: int, length: int) -> Iterator[Row | BadRow]:
        first = start - file.first
        try:
            # As JSON, every type has one text form, without Python's time zones, decimals or bytes.
            values = self._connection.execute(
                "SELECT to_json(part) FROM (SELECT * EXCLUDE (file_row_number) FROM "
                "read_parquet(?, file_row_number = true) WHERE file_row_number >= ? AND file_row_number < ? "
                "ORDER BY file_row_number) AS part",
                [file.path, first, first + length],
            ).fetchall()
        except duckdb.Error as error:
            reason = f"DuckDB cannot read rows {start} to {start + length - 1}: {first_line(error)}"
            yield BadRow(start, reason, Position(start + length))
            return
        for offset, (text,) in enumerate(values, start):
            raw, refusal = str(text).encode(), ""
            if len(raw) > self._longest:
                raw, refusal = b"", f"longer than {self._longest // 1024 // 1024} MB (the server's limit for one row)"
            yield decode(Raw(offset, raw, Position(offset + 1), refusal))


def connect_local(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection that may read this one file and nothing else: no other file, no network, no extension."""
    connection = _connect()
    try:
        connection.execute("SET allowed_paths = [?]", [str(path)])
        connection.execute("SET enable_external_access = false")
    except duckdb.Error as error:
        raise SourceError(f"DuckDB refuses its settings: {first_line(error)}") from None
    return connection


def connect_remote(secret: str) -> duckdb.DuckDBPyConnection:
    """A connection with DuckDB's extension `httpfs`, which is installed from DuckDB's site where it is missing.

    `secret` is a `CREATE SECRET …` statement or empty.
    """
    connection = _connect()
    try:
        try:
            connection.execute("LOAD httpfs")
        except duckdb.Error:
            # Only for a remote source, which needs the network anyway.
            connection.execute("INSTALL httpfs")
            connection.execute("LOAD httpfs")
    except duckdb.Error as error:
        raise SourceError(
            f"hf:// and s3:// need DuckDB's httpfs extension, which could not be loaded: {first_line(error)}"
        ) from None
    if secret:
        try:
            connection.execute(secret)
        except duckdb.Error:
            raise SourceError("DuckDB refuses the credentials of the environment.") from None
    return connection


def first_line(error: duckdb.Error) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0][:300]


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute(f"SET memory_limit = '{MEMORY}'")
    connection.execute("SET threads = 2")
    return connection
