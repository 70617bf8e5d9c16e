"""Simulated runs whose duels have a known winner, and panels of which some judges are spoiled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import ORDERS, DuelScore, OrderedVerdict
from judging.statistics.acceptance import GateResult, acceptance
from judging.statistics.gate import GateDuel, GateSettings
from judging.statistics.judges.controls import ControlFigures
from judging.statistics.judges.readings import JudgedDuel
from tests.judging.statistics.worlds import merged, on_controls

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
DIMS = len(DIMENSIONS)
STYLES = ("comments", "first_person", "tests", "language")


@dataclass
class Run:
    """Rows of one simulated run, in the order of time.

    `truth` is 1 where the challenger's answer is better, -1 where its opponent's, else 0; `says` is what each judge
    makes of it, `present` whether its replies parse. `marks` are 1 where only the challenger's answer has the mark.
    """

    rng: np.random.Generator
    repo: Ints
    pull: Ints
    truth: Ints
    lengths: NDArray[np.float64]
    marks: dict[str, Ints]
    says: dict[str, Ints]
    present: dict[str, Bools]
    flagged: Bools
    bribed: Bools
    figures: dict[str, ControlFigures] = field(default_factory=dict)
    seats: dict[str, float] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.repo)

    @property
    def clock(self) -> NDArray[np.float64]:
        return np.arange(self.n) / self.n

    def some(self, share: float) -> Bools:
        return np.asarray(self.rng.random(self.n) < share)

    def push(self, judges: Sequence[str], rows: Bools, to: int | Ints = 1) -> None:
        for judge in judges:
            self.says[judge] = np.where(rows, to, self.says[judge])


Bend = Callable[[Run, tuple[str, ...]], None]


@dataclass(frozen=True)
class Panels:
    """`sizes` are duels by repository, `pulls` pull requests in each. `gain` is how much more often the challenger's
    answer is truly better; `ties` the share of duels without a better answer; `spread` and `within` are the effects
    of repositories and pull requests on the gain; `hard` is the share of duels in which every judge guesses."""

    accuracies: tuple[float, ...]
    sizes: tuple[int, ...] = (8,) * 15
    pulls: int = 4
    gain: float = 0.0
    ties: float = 0.2
    spread: float = 0.15
    within: float = 0.1
    hard: float = 0.0
    spoiled: int = 0
    bend: Bend | None = None

    @property
    def panel(self) -> tuple[str, ...]:
        return tuple(f"judge-{letter}" for letter in "abcdefg"[: len(self.accuracies)])

    def made(self, seed: Sequence[int]) -> Run:
        rng = np.random.default_rng(seed)
        repo = np.repeat(np.arange(len(self.sizes)), self.sizes)
        rng.shuffle(repo)
        n = len(repo)
        pull = repo * 1000 + rng.integers(0, self.pulls, n)
        lean = self.gain + rng.normal(0, self.spread, len(self.sizes))[repo]
        lean = np.clip(lean + rng.normal(0, self.within, pull.max() + 1)[pull], -0.95, 0.95)
        truth = np.where(rng.random(n) < self.ties, 0, np.where(rng.random(n) < (1 + lean) / 2, 1, -1))
        hard = rng.random(n) < self.hard
        says = {}
        for judge, accuracy in zip(self.panel, self.accuracies, strict=True):
            seen = np.where(truth == 0, rng.integers(-1, 2, n), truth)
            right = rng.random(n) < np.where(hard, 0.5, accuracy)
            says[judge] = np.where(right, seen, -seen)
        marks = {name: rng.integers(0, 2, n) - rng.integers(0, 2, n) for name in STYLES}
        lengths = np.asarray(np.exp(rng.normal([5.0, 5.2], 0.4, (n, 2))), dtype=np.float64)
        present = {judge: np.ones(n, dtype=bool) for judge in self.panel}
        none = np.zeros(n, dtype=bool)
        run = Run(rng, repo, pull, truth, lengths, marks, says, present, none, none.copy())
        for judge, accuracy in zip(self.panel, self.accuracies, strict=True):
            told = rng.binomial(15, min(0.95, 0.5 + 2.5 * (accuracy - 0.5)))
            run.figures |= on_controls(judge, told=int(told), false=int(rng.binomial(8, 0.05)))
        if self.bend:
            self.bend(run, self.panel[: self.spoiled])
        return run

    def verdict(self, seed: Sequence[int], **settings: object) -> GateResult:
        run = self.made(seed)
        return acceptance(
            gated(run),
            panel=self.panel,
            controls=run.figures,
            settings=GateSettings(resamples=500, **settings),  # type: ignore[arg-type]
        )


def gated(run: Run) -> list[GateDuel]:
    return [
        GateDuel(duel.score, duel.repo, duel.instance_id, injection=bool(run.flagged[row]))
        for row, duel in enumerate(judged(run))
    ]


def judged(run: Run) -> list[JudgedDuel]:
    replies = {judge: _replies(run, judge) for judge in run.says}
    return [_duel(run, row, replies) for row in range(run.n)]


def _replies(run: Run, judge: str) -> Ints:
    """Shape (duels, orders, dimensions): three in four dimensions follow the judge, some are a draw, some differ."""
    said = run.says[judge][:, None]
    luck = run.rng.random((run.n, DIMS))
    sides = np.where(luck < 0.75, said, np.where(luck < 0.9, 0, -said))
    both = np.stack([sides, sides], axis=1)
    both = np.where(run.rng.random(both.shape) < 0.08, run.rng.integers(-1, 2, both.shape), both)
    # In seat terms: with the king first the challenger is 2, with the challenger first it is 1.
    challenger = np.array([2, 1]).reshape(1, 2, 1)
    replies = np.where(both == 0, 0, np.where(both > 0, challenger, 3 - challenger))
    first = run.rng.random((run.n, 2, 1)) < run.seats.get(judge, 0.0)
    return np.where(first, 1, replies)


def _duel(run: Run, row: int, replies: dict[str, Ints]) -> JudgedDuel:
    verdicts, judges = [], []
    for judge, said in replies.items():
        read = bool(run.present[judge][row])
        for order, reply in enumerate(said[row]):
            dimensions = dict(zip(DIMENSIONS, reply.tolist(), strict=True)) if read else None
            verdicts.append(OrderedVerdict(judge, ORDERS[order], dimensions, 1 if read else 3))
        if read:
            judges.append(merged(judge, said[row]))
    parsed = len(judges) == len(replies)
    score = 100 * sum(judge.score for judge in judges) / len(judges) if judges else None
    king, challenger = run.lengths[row].astype(int).tolist()
    return JudgedDuel(
        tuple(verdicts),
        DuelScore(score, {}, tuple(judges), parsed=parsed, flipped=False, spread=0.0),
        instance_id=f"p{run.pull[row]}",
        lengths=(king, challenger),
        repo=f"r{run.repo[row]}",
        hour=int(24 * row // run.n),
    )
