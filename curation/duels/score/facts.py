"""The columns of duels that scores and figures need. Rows of models would read and decode all others too."""

from collections.abc import Sequence
from typing import NamedTuple

from curation.duels.models import Duel
from curation.web.ids import IdList


class DuelAnswer(NamedTuple):
    side: str
    model: str
    instructions_hash: str
    fingerprint: str
    family: str
    tokens: int


class DuelFacts(NamedTuple):
    """`leak` and `read`: the lint, or the second reader, found a leak in the challenger's answer. `reading` is the
    state of the second reader's reading, None where no reader was to read. `king` is None in a duel against the
    reference. `source` and `row` are of the conversation that the turn is from."""

    pk: int
    flags: int
    repo: str
    instance_id: str
    source: str
    row: int
    leak: bool
    read: bool
    reading: str | None
    challenger: DuelAnswer
    king: DuelAnswer | None

    @property
    def cluster(self) -> str:
        """The pull request, or without one the conversation: turns of one are not independent."""
        return self.instance_id or f"{self.source}:{self.row}"


_ANSWER = DuelAnswer._fields
_COLUMNS = (
    *("pk", "flags", "prompt__repo", "prompt__instance_id", "prompt__source", "prompt__row_offset"),
    *("challenger__leak_flag", "challenger__reader_flag", "challenger__reading__state"),
    *(f"challenger__{name}" for name in _ANSWER),
    *(f"king__{name}" for name in _ANSWER),
)
_OWN = len(_COLUMNS) - 2 * len(_ANSWER)


def duel_facts(ids: Sequence[int]) -> dict[int, DuelFacts]:
    """Return the facts by id. A duel that was deleted, and a control duel, is missing."""
    found = {}
    for row in Duel.objects.filter(pk__in=IdList(ids)).values_list(*_COLUMNS):
        challenger, king = row[_OWN : -len(_ANSWER)], row[-len(_ANSWER) :]
        sides = DuelAnswer._make(challenger), None if king[0] is None else DuelAnswer._make(king)
        found[row[0]] = DuelFacts._make((*row[:_OWN], *sides))
    return found
