"""The judges' view of a duel, in the words of the page: who won each dimension in each order, and why."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.duels.models import Duel, Order, Verdict
from curation.web.text.markup import visible
from judging.panel.rubric import DIMENSIONS


@dataclass(frozen=True, slots=True)
class Reading:
    """One order of one judge; `winners` are king, challenger, draw or – per dimension of the rubric."""

    order: str
    parsed: bool
    winners: tuple[str, ...]
    reason: SafeString


@dataclass(frozen=True, slots=True)
class Judge:
    """`rows` pairs each dimension with what the judge said in each order; `flips` counts those that disagree."""

    name: str
    readings: tuple[Reading, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    flips: int


def judges_of(duel: Duel) -> list[Judge]:
    """One query."""
    opponent = "king" if duel.king_id else "reference"
    by_judge: dict[str, list[Reading]] = {}
    for verdict in Verdict.objects.filter(duel=duel).order_by("judge", "-order"):
        by_judge.setdefault(verdict.judge, []).append(_reading(verdict, opponent))
    return [_judge(name, tuple(readings)) for name, readings in by_judge.items()]


def _judge(name: str, readings: tuple[Reading, ...]) -> Judge:
    said = list(zip(*(reading.winners for reading in readings), strict=True))
    rows = tuple(zip(DIMENSIONS, said, strict=True))
    parsed = [reading for reading in readings if reading.parsed]
    flips = sum(len(set(words)) > 1 for words in zip(*(reading.winners for reading in parsed), strict=True))
    return Judge(name, readings, rows, flips if len(parsed) > 1 else 0)


def _reading(verdict: Verdict, opponent: str) -> Reading:
    first, second = (opponent, "challenger") if verdict.order == Order.KING_FIRST else ("challenger", opponent)
    words = {1: first, 2: second, 0: "draw"}
    winners = tuple(words.get(verdict.dimensions.get(name), "–") for name in DIMENSIONS)
    label = f"{first} first"
    return Reading(label, verdict.parsed, winners, visible(verdict.reason))
