"""What a format makes of a turn, and of a trajectory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from curation.exports.rows.session import Session
from curation.exports.rows.skip_reasons import Reason
from curation.exports.rows.turns import Source, Turn


class Row(NamedTuple):
    """One line of a data file before it is written: an object in JSON; `characters` is what a trainer would have to
    fit; `pair` is the stored pair of trajectories that the row comes from, if any."""

    source: Source
    json: bytes
    characters: int
    pair: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """A name, a sentence about the rows, whether they are preferences, and how a turn or a trajectory becomes rows (or
    reasons why not). Both raise `orjson.JSONEncodeError` where a text cannot be written as UTF-8."""

    name: str
    about: str
    pairs: bool
    rows: Callable[[Turn, tuple[Source, ...]], Iterable[Row | Reason]]
    trajectory_rows: Callable[[Session, tuple[Source, ...]], Iterable[Row | Reason]]
