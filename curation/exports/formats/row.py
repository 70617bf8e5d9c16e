"""What a format makes of an approved turn or a kept trajectory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from curation.exports.rows.messages import Conversation
from curation.exports.rows.session import Session
from curation.exports.rows.skip_reasons import SkipReason

Source = Literal["duels", "revisions", "scenarios"]


class Turn(NamedTuple):
    """An approved turn. `rejected` is the other answer, `replaced` the answer that the kept revision replaced."""

    prompt: Conversation
    chosen: str
    rejected: str | None
    replaced: str | None
    draw: bool


class Row(NamedTuple):
    """One line of a data file as a JSON object. `characters` is its length for a trainer; `pair` is the stored pair of
    trajectories that it comes from, or empty."""

    source: Source
    json: bytes
    characters: int
    pair: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """A data file format. `pairs` says whether its rows are preferences. Both functions return rows, or reasons for
    missing ones, and raise `orjson.JSONEncodeError` for a text that UTF-8 cannot encode."""

    name: str
    about: str
    pairs: bool
    turn_rows: Callable[[Turn, tuple[Source, ...]], Iterable[Row | SkipReason]]
    session_rows: Callable[[Session, tuple[Source, ...]], Iterable[Row | SkipReason]]
