"""Find in a session, on the server: most of a long transcript is not in the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.trajectories.session.steps import Turn, places_of, text_of
from curation.web.text.markup import found_spans, visible

MOST_HITS, LINE, BEFORE = 50, 160, 400


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that holds the text `count` times; `start` is where to begin showing it, so that the first is in sight."""

    step: int
    turn: int
    start: int
    line: SafeString
    count: int


@dataclass(frozen=True, slots=True)
class Found:
    hits: list[Hit]
    total: int


def find_turns(turns: Sequence[Turn], wanted: str) -> Found:
    """The first turns that hold the text, whatever its case, and how many there are in all."""
    folded = wanted.casefold()
    if not folded:
        return Found([], 0)
    places = [(place.number, index) for place in places_of(turns) for index in place.turns]
    found = [(step, index) for step, index in places if folded in text_of(turns[index]).casefold()]
    return Found([_hit(turns, step, index, wanted) for step, index in found[:MOST_HITS]], len(found))


def _hit(turns: Sequence[Turn], step: int, index: int, wanted: str) -> Hit:
    text = text_of(turns[index])
    spans = found_spans(text, wanted)
    first = spans[0][0] if spans else 0
    at = max(first - 40, 0)
    start = text.rfind("\n", 0, max(first - BEFORE, 0)) + 1
    return Hit(step, index, start, visible(" ".join(text[at : at + LINE].split())), len(spans))
