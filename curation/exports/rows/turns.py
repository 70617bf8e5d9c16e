"""One approved turn as every format sees it."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from curation.exports.rows.messages import Conversation
from curation.exports.rows.skip_reasons import Reason, pair_reason

Source = Literal["duels", "revisions", "scenarios"]


class Turn(NamedTuple):
    """`rejected` is the opponent's answer, `replaced` the answer that a kept revision took the place of."""

    prompt: Conversation
    chosen: str
    rejected: str | None
    replaced: str | None
    draw: bool


class Pair(NamedTuple):
    """Two answers to one prompt, the first preferred, and where the preference comes from."""

    chosen: str
    rejected: str
    source: Source


def pairs(turn: Turn, sources: tuple[Source, ...]) -> Iterator[Pair | Reason]:
    """The preferences of a turn from the sources that a recipe names, or why one of them gives none."""
    if "duels" in sources:
        if turn.draw:
            yield Reason.DRAW
        elif turn.rejected is None:
            yield Reason.NO_OPPONENT
        else:
            yield pair_reason(turn.chosen, turn.rejected) or Pair(turn.chosen, turn.rejected, "duels")
    if "revisions" in sources and turn.replaced is not None:
        yield pair_reason(turn.chosen, turn.replaced) or Pair(turn.chosen, turn.replaced, "revisions")
