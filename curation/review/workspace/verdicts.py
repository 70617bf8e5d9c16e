"""The judges' verdicts on a duel: who won each dimension in each order, and why."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.duels.models import Duel, Order, Verdict
from curation.duels.score.models import Score
from curation.web.text.markup import visible
from judging.panel.rubric import DIMENSIONS


@dataclass(frozen=True, slots=True)
class Reading:
    """One judge's verdict in one order. `winners` has king, reference, challenger, draw or – for each dimension."""

    pk: int
    order: str
    parsed: bool
    winners: tuple[str, ...]
    reason: SafeString


@dataclass(frozen=True, slots=True)
class Judge:
    """`rows` has each dimension with its winner in each order; `flips` counts those that differ between the orders."""

    name: str
    readings: tuple[Reading, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    flips: int


def judges_of(duel: Duel, score: Score | None) -> list[Judge]:
    """Return the judges whose verdicts made the score; none without one."""
    king = "king" if duel.king_id else "reference"
    by_judge: dict[str, list[Reading]] = {}
    made_by = Verdict.objects.filter(pk__in=score.verdicts) if score is not None else Verdict.objects.none()
    for verdict in made_by.order_by("judge", "-order"):
        by_judge.setdefault(verdict.judge, []).append(_reading(verdict, king))
    return [_judge(name, tuple(readings)) for name, readings in by_judge.items()]


def _judge(name: str, readings: tuple[Reading, ...]) -> Judge:
    winners = zip(*(reading.winners for reading in readings), strict=True)
    rows = tuple(zip(DIMENSIONS, winners, strict=True))
    parsed = [reading.winners for reading in readings if reading.parsed]
    flips = sum(len(set(of_dimension)) > 1 for of_dimension in zip(*parsed, strict=True))
    return Judge(name, readings, rows, flips)


def _reading(verdict: Verdict, king: str) -> Reading:
    first, second = (king, "challenger") if verdict.order == Order.KING_FIRST else ("challenger", king)
    names = {1: first, 2: second, 0: "draw"}
    winners = tuple(names.get(verdict.dimensions.get(name), "–") for name in DIMENSIONS)
    return Reading(verdict.pk, f"{first} first", verdict.parsed, winners, visible(verdict.reason))
