"""The readings of a panel as arrays."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judging.panel.rubric import DIMENSIONS, in_order
from judging.panel.scoring import ORDERS, DuelScore, OrderedVerdict

Floats = NDArray[np.float64]

# Repositories and parts of the day that are looked at, and the duels that each needs.
MOST_PLACES, FEW_IN_PLACE = 6, 10
_CHALLENGER_FIRST = ORDERS.index("challenger_first")


@dataclass(frozen=True, slots=True)
class JudgedDuel:
    """One judged duel: the replies that were asked for (unparsed ones included) and the score made of them.

    `lengths` and `families` are of the king (or reference) and the challenger, lengths in any one unit; `leak`: the
    challenger's answer is flagged as leaking the record; `hour` (UTC) is when it was read; `style` counts marks of
    both answers by their kind.
    """

    verdicts: tuple[OrderedVerdict, ...]
    score: DuelScore
    instance_id: str = ""
    leak: bool = False
    lengths: tuple[int, int] | None = None
    families: tuple[str, str] = ("", "")
    repo: str = ""
    hour: int | None = None
    style: tuple[Mapping[str, int], Mapping[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class JudgeReadings:
    """The readings of one judge, over N duels in the order of time, 2 orders and the D dimensions of their rubric.

    seats     (N, 2, D) 1 where the first answer is preferred, -1 the second, 0 a draw, NaN if unparsed or not asked
    sides     the same for the challenger against its opponent
    score     (N,) the merged score from 0 to 1 (challenger better), NaN unless every asked order parsed
    merged    (N, D) the merged dimensions from 0 to 1, NaN likewise
    flips     (N, D) whether the two orders disagreed
    attempts  (N, 2) replies asked for, 0 where there was no question
    own       (N,) 1 where only the challenger is of the judge's family, -1 where only its opponent is, else 0
    """

    judge: str
    dimensions: tuple[str, ...]
    seats: Floats
    sides: Floats
    score: Floats
    merged: Floats
    flips: NDArray[np.bool_]
    attempts: NDArray[np.int64]
    own: Floats

    @property
    def both(self) -> NDArray[np.bool_]:
        """Shape (N,): both orders were read, so that a seat's advantage can be told from a side's."""
        return np.asarray((~np.isnan(self.seats[:, :, 0])).all(axis=1), dtype=bool)

    @property
    def seat_lead(self) -> Floats:
        """Shape (N,): choices of the first answer minus choices of the second, NaN unless both orders were read."""
        lead: Floats = np.where(self.both, self.seats.sum(axis=(1, 2)), np.nan)
        return lead

    @property
    def draws(self) -> Floats:
        """Shape (N,): the share of draws in the replies about a duel, NaN without replies."""
        return _row_means(np.where(np.isnan(self.seats), np.nan, self.seats == 0).reshape(len(self.seats), -1))


@dataclass(frozen=True, slots=True)
class PanelReadings:
    """`ratio` (N,) is log2 of challenger's by opponent's length, 0 if unknown; `clusters` (N,) numbers of instances.

    `styles` are 1 where only the challenger's answer, or more of it, has marks of a kind, -1 where its opponent's, else
    0. `places` are 1 for the duels of a repository or of six hours of the day, else 0, by ("repository", name).
    """

    judges: Mapping[str, JudgeReadings]
    leak: NDArray[np.bool_]
    ratio: Floats
    clusters: NDArray[np.intp]
    count: int
    styles: Mapping[str, Floats]
    places: Mapping[tuple[str, str], Floats]


def panel_readings(
    duels: Sequence[JudgedDuel], *, panel: Sequence[str], families: Mapping[str, str] | None = None
) -> PanelReadings:
    """Return the readings of each judge of `panel`; `duels` are in the order of time, `families` of the judges.

    Replies by another rubric than that of the last duel do not count as parsed.
    """
    dimensions = _last_rubric(duels)
    judges = {judge: _empty(judge, len(duels), dimensions) for judge in panel}
    for row, duel in enumerate(duels):
        for verdict in duel.verdicts:
            if verdict.judge in judges:
                _add_verdict(judges[verdict.judge], row, verdict)
        for score in duel.score.judges:
            if score.judge in judges and score.dimensions.keys() == set(dimensions):
                into = judges[score.judge]
                into.score[row] = score.score
                into.merged[row] = [score.dimensions[name] for name in dimensions]
                into.flips[row] = [name in score.flips for name in dimensions]
        for judge, family in (families or {}).items():
            if family and judge in judges:
                judges[judge].own[row] = (duel.families[1] == family) - (duel.families[0] == family)
    lengths = np.array([duel.lengths if duel.lengths and min(duel.lengths) > 0 else (1, 1) for duel in duels])
    ratio = np.log2(lengths[:, 1] / lengths[:, 0]) if duels else np.zeros(0)
    names: dict[str, int] = {}
    clusters = [names.setdefault(duel.instance_id or f"\0{row}", len(names)) for row, duel in enumerate(duels)]
    leak = np.array([duel.leak for duel in duels], dtype=bool)
    numbers = np.array(clusters, dtype=np.intp)
    return PanelReadings(judges, leak, ratio, numbers, len(duels), _styles(duels), _places(duels))


def _last_rubric(duels: Sequence[JudgedDuel]) -> tuple[str, ...]:
    for duel in reversed(duels):
        for verdict in reversed(duel.verdicts):
            if verdict.dimensions is not None:
                return in_order(verdict.dimensions)
    return DIMENSIONS


def _styles(duels: Sequence[JudgedDuel]) -> dict[str, Floats]:
    kinds = sorted({kind for duel in duels if duel.style for kind in duel.style[0]})
    more = {
        kind: [np.sign(duel.style[1][kind] - duel.style[0][kind]) if duel.style else 0 for duel in duels]
        for kind in kinds
    }
    return {kind: np.array(signs, dtype=np.float64) for kind, signs in more.items()}


def _places(duels: Sequence[JudgedDuel]) -> dict[tuple[str, str], Floats]:
    """The largest repositories and parts of the day, with enough duels in them and elsewhere."""
    names = [("repository", duel.repo) for duel in duels if duel.repo]
    names += [("hours", _quarter(duel.hour)) for duel in duels if duel.hour is not None]
    chosen = [(name, n) for name, n in Counter(names).most_common() if FEW_IN_PLACE <= n <= len(duels) - FEW_IN_PLACE]
    return {
        name: np.array([name[1] in (duel.repo, _quarter(duel.hour)) for duel in duels], dtype=np.float64)
        for name, _ in chosen[:MOST_PLACES]
    }


def _quarter(hour: int | None) -> str:
    return "" if hour is None else f"{hour // 6 * 6:02}:00 to {hour // 6 * 6 + 6:02}:00 UTC"


def _empty(judge: str, rows: int, dimensions: tuple[str, ...]) -> JudgeReadings:
    shape = (rows, len(ORDERS), len(dimensions))
    return JudgeReadings(
        judge=judge,
        dimensions=dimensions,
        seats=np.full(shape, np.nan),
        sides=np.full(shape, np.nan),
        score=np.full(rows, np.nan),
        merged=np.full((rows, len(dimensions)), np.nan),
        flips=np.zeros((rows, len(dimensions)), dtype=bool),
        attempts=np.zeros((rows, len(ORDERS)), dtype=np.int64),
        own=np.zeros(rows),
    )


_SEATS = {0: 0.0, 1: 1.0, 2: -1.0}


def _add_verdict(into: JudgeReadings, row: int, verdict: OrderedVerdict) -> None:
    order = ORDERS.index(verdict.order)
    into.attempts[row, order] += verdict.attempts
    if verdict.dimensions is not None and verdict.dimensions.keys() == set(into.dimensions):
        seats = [_SEATS[verdict.dimensions[name]] for name in into.dimensions]
        into.seats[row, order] = seats
        into.sides[row, order] = seats if order == _CHALLENGER_FIRST else [-seat for seat in seats]


def _row_means(values: Floats) -> Floats:
    known = (~np.isnan(values)).sum(axis=1)
    with np.errstate(invalid="ignore"):
        means: Floats = np.nansum(values, axis=1) / known
    return means
