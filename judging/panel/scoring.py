"""The score of one duel, from the challenger's side, and its bucket.

All sums run over whole numbers (a win is two halves, a draw one), divided once at the end. So a score that is 80
on paper is 80.0 here, and no duel changes its bucket by a rounding error.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from judging.panel.rubric import in_order

KING_FIRST = "king_first"
CHALLENGER_FIRST = "challenger_first"
ORDERS: tuple[str, ...] = (KING_FIRST, CHALLENGER_FIRST)

# One number for each dimension: a win of the challenger is two halves, a draw one.
Halves = tuple[int, ...]
_DRAW = 1
_HALVES = {KING_FIRST: {0: _DRAW, 1: 0, 2: 2}, CHALLENGER_FIRST: {0: _DRAW, 1: 2, 2: 0}}


@dataclass(frozen=True, slots=True)
class OrderedVerdict:
    """One judge's reading of one duel in one order.

    `dimensions` maps every name of the rubric to 1 (the answer shown first is better), 2 (the second) or 0 (a draw);
    None when the reply could not be parsed. `attempts` counts the replies up to this one.
    """

    judge: str
    order: str
    dimensions: Mapping[str, int] | None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """One judge's scores after merging its orders. `score` and `dimensions` run from 0 to 1, 1 = challenger better.

    `flips` names the dimensions on which the two orders disagreed (each of them counts as a draw).
    """

    judge: str
    score: float
    dimensions: Mapping[str, float]
    flips: tuple[str, ...]

    @property
    def preferred(self) -> int:
        """1 for the challenger, -1 for its opponent, 0 for neither."""
        centred = round(self.score - 0.5, 9)
        return (centred > 0) - (centred < 0)


@dataclass(frozen=True, slots=True)
class DuelScore:
    """`score`, `metrics` and `spread` run from 0 to 100. `score` is None, and `metrics` empty, unless `parsed`.

    `judges` lists every judge that parsed, in the order of the panel, also when they were too few.
    """

    score: float | None
    metrics: Mapping[str, float]
    judges: tuple[JudgeScore, ...]
    parsed: bool
    flipped: bool
    spread: float


def score_duel(
    verdicts: Iterable[OrderedVerdict],
    *,
    panel: Sequence[str],
    orders: Sequence[str] = ORDERS,
    min_judges: int | None = None,
    weights: Mapping[str, float] | None = None,
) -> DuelScore:
    """Merge the verdicts of a panel into one score (specification of duels, sections 3 and 4).

        judge_score = weighted mean of the dimensions, after merging the orders
        score       = 100 x mean of judge_score over the parsed judges
        metric      = 100 x mean of that dimension over the parsed judges

    A judge is parsed when every asked order parsed; the duel is parsed when at least `min_judges` are (default: all).
    Verdicts of judges outside `panel` or orders outside `orders` are ignored. Of several verdicts for the same judge
    and order the last parsed one counts, so a retry replaces the failed attempt.

    A verdict by another rubric than that of the last one is ignored too, since its dimensions are others.

    Raises ValueError for an empty or repeating panel, unknown orders, `min_judges` below 1, weights that are
    negative or all 0, and dimensions without a value of 0, 1 or 2. A dimension without a weight weighs 1.
    """
    _check_question(panel, orders, min_judges)
    counted = [one for one in verdicts if one.judge in panel and one.order in orders and one.dimensions is not None]
    names = _names(frozenset(counted[-1].dimensions or ())) if counted else ()
    parts = _weight_parts(weights, names)
    whole = 2 * sum(parts)
    replies = _last_parsed(counted, names)
    merged: dict[str, _Merged] = {}
    for judge in panel:
        parsed = tuple(replies[judge, order] for order in orders if (judge, order) in replies)
        if len(parsed) == len(orders):
            merged[judge] = _merge_orders(parsed, names)
    exact = {judge: sum(map(mul, parts, one.halves)) for judge, one in merged.items()}
    judges = tuple(JudgeScore(judge, exact[judge] / whole, one.dimensions, one.flips) for judge, one in merged.items())
    count = len(merged)
    enough = count >= (len(panel) if min_judges is None else min_judges)
    score = 100 * sum(exact.values()) / (whole * count) if enough else None
    sums = map(sum, zip(*(one.halves for one in merged.values()), strict=True))
    metrics = {d: 100 * total / (2 * count) for d, total in zip(names, sums, strict=False)} if enough else {}
    spread = 100 * (max(exact.values()) - min(exact.values())) / whole if exact else 0.0
    return DuelScore(score, metrics, judges, enough, any(judge.flips for judge in judges), spread)


def _check_question(panel: Sequence[str], orders: Sequence[str], min_judges: int | None) -> None:
    if not panel or len(set(panel)) != len(panel):
        raise ValueError("a panel needs at least one judge, each named once")
    if not orders or len(set(orders)) != len(orders) or not set(orders) <= set(ORDERS):
        raise ValueError(f"orders must be one or both of {', '.join(ORDERS)}")
    if min_judges is not None and min_judges < 1:
        raise ValueError("min_judges must be at least 1")


@lru_cache(maxsize=256)
def _names(dimensions: frozenset[str]) -> tuple[str, ...]:
    return in_order(dimensions)


def _weight_parts(weights: Mapping[str, float] | None, names: Sequence[str]) -> tuple[int, ...]:
    """Return whole numbers in the proportion of the weights. Without a verdict nothing is weighed."""
    if weights is None or not names:
        return (1,) * len(names)
    # Through text, so that 0.1 is one tenth and not its binary neighbour.
    exact = {dimension: Fraction(str(weights.get(dimension, 1))) for dimension in names}
    if min(exact.values()) < 0 or not any(exact.values()):
        raise ValueError("weights must not be negative and must not all be 0")
    unit = math.lcm(*(weight.denominator for weight in exact.values()))
    return tuple(int(exact[dimension] * unit) for dimension in names)


def _last_parsed(verdicts: Iterable[OrderedVerdict], names: tuple[str, ...]) -> dict[tuple[str, str], Halves]:
    replies: dict[tuple[str, str], Halves] = {}
    for verdict in verdicts:
        given = verdict.dimensions or {}
        if given.keys() == set(names):
            replies[verdict.judge, verdict.order] = _challenger_halves(given, verdict.order, names)
    return replies


def _challenger_halves(dimensions: Mapping[str, int], order: str, names: tuple[str, ...]) -> Halves:
    try:
        return tuple(map(_HALVES[order].__getitem__, map(dimensions.__getitem__, names)))
    except KeyError:
        raise ValueError(f"a parsed verdict has the values 0, 1 or 2: {dimensions}") from None


class _Merged(NamedTuple):
    halves: Halves
    dimensions: Mapping[str, float]
    flips: tuple[str, ...]


@lru_cache(maxsize=1 << 16)
def _merge_orders(readings: tuple[Halves, ...], names: tuple[str, ...]) -> _Merged:
    """Merge a judge's readings of its orders. Two readings on five dimensions have 59,049 values, and most duels few of
    them."""
    halves = tuple(said[0] if len(set(said)) == 1 else _DRAW for said in zip(*readings, strict=True))
    flips = tuple(d for d, said in zip(names, zip(*readings, strict=True), strict=True) if len(set(said)) > 1)
    return _Merged(halves, {d: half / 2 for d, half in zip(names, halves, strict=True)}, flips)


# A duel with one of these flags is never `final`: a person has to look first.
HOLDING_FLAGS = frozenset({"leak", "leak_reader", "leak_unread", "injection", "infra"})


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Lower edges of the buckets `final` and `refined`, in points from 0 to 100."""

    final: float = 80.0
    refined: float = 66.0

    def __post_init__(self) -> None:
        if not 0 <= self.refined <= self.final <= 100:
            raise ValueError(f"thresholds need 0 <= refined <= final <= 100, not {self.refined} and {self.final}")


def bucket_for(score: float | None, *, flags: Collection[str], thresholds: Thresholds) -> str:
    """Name the bucket: `final`, `refined`, `defeat` or `unparsed`. A flag that holds turns final into refined."""
    if score is None:
        return "unparsed"
    if score >= thresholds.final:
        return "refined" if HOLDING_FLAGS.intersection(flags) else "final"
    return "refined" if score >= thresholds.refined else "defeat"
