"""What sifting reads of prompts and answers: plain columns, since building model rows costs more than all the
rest; long texts a few at a time, since memory that a thousand of them fill costs as much again."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson
from django.db.models import Case, TextField, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast

from curation.duels.models import Duel
from curation.web.lists.id_list import Among
from judging.messages import content_of

_AT_ONCE = 50


class Texts(NamedTuple):
    """A duel's texts: the history as JSON, both answers, and the row of its source, which groups turns that have no
    instance id."""

    history: str
    candidate: str
    opponent: str | None
    source: str
    row_offset: int

    @property
    def place(self) -> str:
        return f"{self.source}#{self.row_offset}"


def read_texts(sample_ids: Sequence[int], *, opponents: bool) -> Iterator[Texts | None]:
    """One for each of the ids, which ascend, in their order; None for a sample that does not come from a duel.

    Where nobody asks for `opponents`, they are not read and None.
    """
    columns: list[str | Combinable] = [
        "sample_id",
        Cast("prompt__text__history", TextField()),
        "challenger__text__text",
    ]
    columns += ["prompt__source", "prompt__row_offset"]
    if opponents:
        reference = Case(When(king=None, then=Cast("prompt__text__reference", TextField())))
        columns += ["king__text__text", reference]
    duels = Duel.objects.filter(sample_id__in=Among(sample_ids), prompt__text__isnull=False).order_by("sample_id")
    rows = duels.values_list(*columns).iterator(chunk_size=_AT_ONCE)
    row = next(rows, None)
    for sample_id in sample_ids:
        if row is None or row[0] != sample_id:
            yield None
            continue
        _, history, candidate, source, offset, *sides = row
        yield Texts(history, candidate, _opponent(*sides) if sides else None, source, offset)
        row = next(rows, None)


def _opponent(king: str | None, reference: str | None) -> str | None:
    return king if reference is None else content_of(parsed(reference))


def parsed(text: str) -> object:
    """A JSON column that was read as text: orjson is much faster than the parser that Django would use."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # Half of a surrogate pair, which JSON can escape and UTF-8 cannot write: the row is left out with that reason.
        return json.loads(text)
