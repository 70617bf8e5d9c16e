"""What a format makes of a turn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from curation.exports.hygiene import Reason
from curation.exports.turns import Source, Turn


class Row(NamedTuple):
    """One line of a data file before it is written; `characters` is what a trainer would have to fit."""

    source: Source
    body: dict[str, object]
    characters: int


@dataclass(frozen=True, slots=True)
class Format:
    """A name, a sentence about the rows, and how a turn becomes rows (or reasons why not)."""

    name: str
    about: str
    rows: Callable[[Turn, tuple[Source, ...]], Iterator[Row | Reason]]
