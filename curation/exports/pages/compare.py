"""Compare two exports by reading both lists of frozen samples side by side, line by line."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson
from django.core.files.storage import default_storage

from curation.exports.files.write import FROZEN
from curation.exports.models import Export
from curation.web.problems import Conflict

SHOWN = 200
Change = Literal["added", "removed", "changed", "moved"]


class RowKey(NamedTuple):
    """The identity of a sample's row in two exports.

    `pair` is the stored pair of trajectories, or empty. `turn` is the index of the approved message where a
    conversation gives several rows, else -1. `rejected` rows are to be avoided.
    """

    format: str
    source: str
    pair: str
    turn: int
    rejected: bool


@dataclass(frozen=True, slots=True)
class ChangedRow:
    sample: str
    format: str
    source: str
    pair: str
    change: Change


@dataclass(slots=True)
class Comparison:
    """Counts of rows, and the first `SHOWN` that differ. `moved` rows are the same in another split."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    moved: int = 0
    same: int = 0
    rows: list[ChangedRow] = field(default_factory=list)


def compare(*, before: Export, after: Export) -> Comparison:
    """Return how `after` differs from `before`. Raises `Conflict` if one of them is not written yet."""
    found = Comparison()
    old, new = _samples(before), _samples(after)
    left, right = next(old, _END), next(new, _END)
    while left != _END or right != _END:
        number = min(left.number, right.number)
        here_before, here_after = left.number == number, right.number == number
        _add_changes(found, int(number), left.rows if here_before else {}, right.rows if here_after else {})
        left = next(old, _END) if here_before else left
        right = next(new, _END) if here_after else right
    return found


class _Sample(NamedTuple):
    """A line of `frozen.jsonl`: split and hash by row. Lines are ordered by number, the sample's id."""

    number: float
    rows: dict[RowKey, tuple[str, str]]


_END = _Sample(math.inf, {})


def _samples(export: Export) -> Iterator[_Sample]:
    file = export.files.filter(name=FROZEN).first() if export.ready else None
    if file is None:
        raise Conflict(f"Export {export.pk} is not written, so there is nothing to compare.", code="not_ready")
    return _lines(file.stored_as)


def _lines(stored_as: str) -> Iterator[_Sample]:
    with default_storage.open(stored_as) as opened:
        for line in opened:
            entry = orjson.loads(line)
            yield _Sample(int(entry["sample"]), {_key(row): (row["split"], row["sha256"]) for row in entry["rows"]})


def _key(row: dict[str, Any]) -> RowKey:
    return RowKey(row["format"], row["source"], row.get("pair", ""), row.get("turn", -1), "rejected" in row)


def _add_changes(
    found: Comparison, number: int, old: dict[RowKey, tuple[str, str]], new: dict[RowKey, tuple[str, str]]
) -> None:
    for key in sorted(old.keys() | new.keys()):
        change = _change(old.get(key), new.get(key))
        if change is None:
            found.same += 1
            continue
        setattr(found, change, getattr(found, change) + 1)
        if len(found.rows) < SHOWN:
            found.rows.append(ChangedRow(str(number), key.format, key.source, key.pair, change))


def _change(old: tuple[str, str] | None, new: tuple[str, str] | None) -> Change | None:
    if old == new:
        return None
    if old is None:
        return "added"
    if new is None:
        return "removed"
    return "changed" if old[1] != new[1] else "moved"
