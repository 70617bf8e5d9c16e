"""What a source gives, row by row, and where reading goes on after it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


class RowRefused(Exception):
    """A row that cannot be taken in; the message is the reason that its sender reads."""


class SourceError(Exception):
    """The source as a whole cannot be read: not there, not a format that is known, an extension missing."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where to go on: `offset` is the number of the next row from 0, `byte` its position in a text source."""

    offset: int = 0
    byte: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """`offset` counts from 0: line number − 1, index in the array, row number of the Parquet source."""

    offset: int
    value: dict[str, object]
    after: Position


@dataclass(frozen=True, slots=True)
class BadRow:
    offset: int
    reason: str
    after: Position


class Reader(Protocol):
    """One opened source. Reading never holds more than a row (text) or a small block of rows (Parquet) in memory."""

    format: str

    def rows(self, start: Position) -> Iterator[Row | BadRow]:
        """All rows from a place on; empty lines are passed over."""
        ...

    def window(self, start: int, length: int) -> Iterator[Row | BadRow]:
        """The rows whose offsets lie in `start … start + length − 1`."""
        ...

    def count(self) -> int:
        """The number of offsets, in one pass for text and from the metadata for Parquet."""
        ...
