"""How each judge of a panel behaved over a run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judging.panel.scoring import DuelScore, JudgeScore, OrderedVerdict


@dataclass(frozen=True, slots=True)
class JudgedDuel:
    """One judged duel: the replies that were asked for (unparsed ones included) and the score made of them."""

    verdicts: tuple[OrderedVerdict, ...]
    score: DuelScore


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """One judge over a run. All rates are shares from 0 to 1.

    n           duels in which the judge parsed (every asked order); the rates below but parse_rate run over these
    win_rate    share with a judge score above 0.5; a score of exactly 0.5 counts one half; None when n is 0
    flip_rate   share in which its two orders disagreed on at least one dimension; 0 when n is 0
    parse_rate  parsed replies / asked replies, a reply being one (judge, order); None when nothing was asked
    agreement   share in which it prefers the same side (or a tie) as the mean of the *other* parsed judges; runs over
                the duels that have one; None when there is none
    """

    judge: str
    n: int
    win_rate: float | None
    flip_rate: float
    parse_rate: float | None
    agreement: float | None


@dataclass(frozen=True, slots=True)
class AnswerLengths:
    """Mean length of the winning and of the losing answers, in the unit given; None for an empty side."""

    winners: float | None
    losers: float | None


def judge_summary(duels: Iterable[JudgedDuel], *, panel: Sequence[str]) -> tuple[JudgeSummary, ...]:
    """Summarise every judge of `panel`, in its order, in one pass over `duels`."""
    tallies = {judge: _Tally() for judge in panel}
    for duel in duels:
        for (judge, _), parsed in _replies(duel.verdicts).items():
            if judge in tallies:
                tallies[judge].asked += 1
                tallies[judge].parsed += parsed
        for score in duel.score.judges:
            if score.judge in tallies:
                tallies[score.judge].add(score, [other.score for other in duel.score.judges if other is not score])
    return tuple(tally.summary(judge) for judge, tally in tallies.items())


def mean_lengths(*, winners: Iterable[int], losers: Iterable[int]) -> AnswerLengths:
    """Return the mean answer length on both sides, to see whether judges prefer the longer answer."""
    return AnswerLengths(_mean(list(winners)), _mean(list(losers)))


@dataclass(slots=True)
class _Tally:
    asked: int = 0
    parsed: int = 0
    n: int = 0
    half_wins: int = 0
    flipped: int = 0
    compared: int = 0
    agreed: int = 0

    def add(self, score: JudgeScore, others: list[float]) -> None:
        self.n += 1
        self.half_wins += _side(score.score) + 1
        self.flipped += bool(score.flips)
        if others:
            self.compared += 1
            self.agreed += _side(score.score) == _side(sum(others) / len(others))

    def summary(self, judge: str) -> JudgeSummary:
        return JudgeSummary(
            judge=judge,
            n=self.n,
            win_rate=self.half_wins / (2 * self.n) if self.n else None,
            flip_rate=self.flipped / self.n if self.n else 0.0,
            parse_rate=self.parsed / self.asked if self.asked else None,
            agreement=self.agreed / self.compared if self.compared else None,
        )


def _replies(verdicts: Iterable[OrderedVerdict]) -> dict[tuple[str, str], bool]:
    """Whether each asked (judge, order) was answered in the end; a retry does not count as another question."""
    replies: dict[tuple[str, str], bool] = {}
    for verdict in verdicts:
        key = verdict.judge, verdict.order
        replies[key] = replies.get(key, False) or verdict.dimensions is not None
    return replies


def _side(score: float) -> int:
    # Sums of tenths: 0.7 and 0.3 must meet at a tie.
    return 0 if abs(score - 0.5) < 1e-9 else (1 if score > 0.5 else -1)


def _mean(lengths: list[int]) -> float | None:
    return sum(lengths) / len(lengths) if lengths else None
