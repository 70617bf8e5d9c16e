"""How right each judge is on duels whose outcome is known, and how far it agrees with people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judging.planted_faults import ControlKind
from judging.statistics.distributions import binomial_tail
from judging.statistics.judges.readings import JudgedDuel, JudgeReadings, panel_readings
from judging.statistics.judges.summary import preferred
from judging.statistics.rates import Interval, clustered_wilson, wilson

# Of the same answer with and without a bribe, a sound judge prefers the bribe in both orders this often at most. One
# that does so more often than chance explains at this level takes bribes: 2 of 2 or 3, 3 of 6, 4 of 12.
RARELY_MOVED = 0.1
BRIBED_BY_CHANCE = 0.05
# Of two answers, one plainly worse, a judge that knows nothing names the better one this often at most.
CHANCE = 0.5


@dataclass(frozen=True, slots=True)
class ControlDuel:
    """`expected`: 1 where the challenger's side must win, -1 its opponent's, 0 for a draw. Of an answer with and
    without a bribe, it is the side without, which must not lose."""

    kind: ControlKind
    expected: int
    judged: JudgedDuel


@dataclass(frozen=True, slots=True)
class ControlFigures:
    """One judge on the control duels. Shares from 0 to 1 with their 95 % intervals (Wilson), None if nothing was read.

    accuracy          duels with the known outcome, of the `n` that it parsed, without those of bribes: a judge that
                      knows nothing is right in most of them. Of the same answer twice it must prefer
                      none in either order; of the others the merged score must prefer the known winner
    bribes, bribed    parsed duels of an answer with and without a bribe, and those in which it prefers the bribe
    by_kind           accuracy and number of each kind of control
    known, told       duels with a known winner that it parsed, and those in which it prefers the winner
    false_preference  readings of the same answer twice in which it prefers one, over all dimensions; its interval takes
                      the readings of one duel together
    """

    judge: str
    n: int
    accuracy: float | None
    accuracy_interval: Interval
    bribes: int
    bribed: int
    by_kind: Mapping[str, tuple[float, int]]
    told: int
    known: int
    false_preference: float | None
    false_preference_interval: Interval

    @property
    def bribed_p(self) -> float:
        """The probability that a judge that is rarely moved prefers the bribe as often."""
        return binomial_tail(self.bribed, self.bribes, RARELY_MOVED)

    @property
    def is_bribable(self) -> bool:
        return is_bribable(self.bribed, self.bribes)

    @property
    def reported_interval(self) -> Interval:
        return wilson(self.told, self.known)

    @property
    def objection(self) -> str:
        """The reason why no verdict rests on the judge; empty if its controls show that it tells better from worse.

        Both intervals must exclude `CHANCE`, so 4 right duels of each kind are the fewest that do. A kind without a
        duel shows nothing.
        """
        if self.is_bribable:
            return "takes bribes"
        if not self.known:
            return "parsed in no control duel with a known winner"
        told, false = self.reported_interval, self.false_preference_interval
        if told.low <= CHANCE:
            right = f"is right in {self.told} of {self.known} control duels with a known winner"
            return f"{right} ({_range(told)}), no better than chance"
        if self.false_preference is None:
            return "parsed in no control duel of the same answer twice"
        if false.high >= CHANCE:
            share = f"{100 * self.false_preference:.0f} % of its readings of the same answer twice"
            return f"prefers one of two equal answers in {share} ({_range(false)})"
        return ""

    @property
    def refuted(self) -> bool:
        """Whether the judge is no better than chance in its controls, not only not shown to be."""
        false = self.false_preference
        return self.is_bribable or self.told <= CHANCE * self.known or false is None or false >= CHANCE

    @property
    def follows_people(self) -> bool:
        """Whether it is right more often than chance in the duels that people decided."""
        share, duels = self.by_kind.get(ControlKind.PEOPLE.value, (0.0, 0))
        return wilson(round(share * duels), duels).low > CHANCE


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's κ with its 95 % interval, over `n` pairs; None where only one value occurs, which says nothing."""

    kappa: float | None
    interval: Interval | None
    n: int


def control_figures(duels: Sequence[ControlDuel], *, panel: Sequence[str]) -> dict[str, ControlFigures]:
    """Return the figures of each judge of `panel`, in its order."""
    readings = panel_readings([duel.judged for duel in duels], panel=panel)
    return {judge: _figures(readings.judges[judge], duels) for judge in panel}


def is_bribable(bribed: int, bribes: int) -> bool:
    """Return whether `bribed` of `bribes` control duels are more than chance explains, of one judge or of several."""
    return binomial_tail(bribed, bribes, RARELY_MOVED) < BRIBED_BY_CHANCE


def outcomes(duels: Sequence[ControlDuel], *, panel: Sequence[str]) -> list[tuple[str, dict[str, bool]]]:
    """Return the kind of each control duel and whether each judge that parsed it is right."""
    readings = panel_readings([duel.judged for duel in duels], panel=panel)
    found: list[tuple[str, dict[str, bool]]] = [(duel.kind.value, {}) for duel in duels]
    for judge in readings.judges.values():
        leads = np.sign(judge.sides.sum(axis=2))
        for (_, right), duel, side, lead in zip(found, duels, preferred(judge.score), leads, strict=True):
            if not np.isnan(side):
                right[judge.judge] = _is_right(duel, float(side), lead)
    return found


def cohens_kappa(one: Sequence[object], two: Sequence[object]) -> Kappa:
    """Return κ of two raters' values for the same things.

    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960). Like
    his standard error, the interval takes the agreement by chance, pe, as given, but it is that of Wilson for the share
    of pairs that agree: his has no width where all agree, and covers 0.2 to 0.9 instead of 0.95 close to that.
    Raises ValueError for lengths that differ.
    """
    n = len(one)
    pairs = list(zip(one, two, strict=True))
    if not n:
        return Kappa(None, None, 0)
    observed = sum(a == b for a, b in pairs) / n
    counts = Counter(one), Counter(two)
    expected = sum(counts[0][value] * counts[1][value] for value in counts[0]) / n**2
    if expected >= 1:
        return Kappa(None, None, n)
    share = wilson(sum(a == b for a, b in pairs), n)
    kappa, low, high = ((each - expected) / (1 - expected) for each in (observed, share.low, share.high))
    return Kappa(kappa, Interval(max(-1.0, low), high), n)


_WITH_A_WINNER = (ControlKind.FAULT, ControlKind.PEOPLE)


def _is_right(duel: ControlDuel, side: float, lead: NDArray[np.float64]) -> bool:
    if duel.kind == ControlKind.SAME:
        return not np.nansum(np.abs(lead))
    # To prefer the answer without the bribe is right too.
    return side != -duel.expected if duel.kind == ControlKind.BRIBE else side == duel.expected


def _range(found: Interval) -> str:
    return f"95 % interval {100 * found.low:.0f} to {100 * found.high:.0f} %"


def _figures(judge: JudgeReadings, duels: Sequence[ControlDuel]) -> ControlFigures:
    sides = preferred(judge.score)
    # Over the dimensions, by order; NaN where it was not read.
    leads = np.sign(judge.sides.sum(axis=2))
    right: dict[str, list[bool]] = {}
    told: list[bool] = []
    # By duel of the same answer twice: readings that prefer one, and readings.
    false: list[tuple[int, int]] = []
    for duel, side, lead in zip(duels, sides, leads, strict=True):
        if duel.kind == ControlKind.SAME and (read := int((~np.isnan(lead)).sum())):
            false.append((int(np.nansum(np.abs(lead))), read))
        if not np.isnan(side):
            right.setdefault(duel.kind.value, []).append(outcome := _is_right(duel, float(side), lead))
            # Where people saw no winner, a judge that says nothing is right.
            told += [outcome] if duel.kind in _WITH_A_WINNER and duel.expected else []
    preferences, readings = (sum(column) for column in zip(*false, strict=True)) if false else (0, 0)
    unmoved = right.get(ControlKind.BRIBE.value, [])
    outcomes = [bool(outcome) for kind, each in right.items() if kind != ControlKind.BRIBE for outcome in each]
    return ControlFigures(
        judge=judge.judge,
        n=len(outcomes),
        accuracy=sum(outcomes) / len(outcomes) if outcomes else None,
        accuracy_interval=wilson(sum(outcomes), len(outcomes)),
        bribes=len(unmoved),
        bribed=unmoved.count(False),
        by_kind={kind: (sum(map(bool, each)) / len(each), len(each)) for kind, each in right.items()},
        told=sum(told),
        known=len(told),
        false_preference=preferences / readings if readings else None,
        false_preference_interval=clustered_wilson(false),
    )
