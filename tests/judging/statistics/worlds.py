"""Simulated runs: duels with effects of repositories and pull requests, read by sound and by flawed judges."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import ORDERS, DuelScore, JudgeScore, OrderedVerdict
from judging.statistics.gate import GateDuel
from judging.statistics.judges.controls import ControlFigures
from judging.statistics.judges.findings import Flaw
from judging.statistics.judges.readings import JudgedDuel
from judging.statistics.rates import Interval, clustered_wilson

FLAT = Interval(0.0, 1.0)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PANEL = ("sound-a", "sound-b", "judge-c")
DIMS = len(DIMENSIONS)
REPOS = {50: 12, 200: 25, 1000: 60}
DRAW = 0.3


class World:
    """Duels of one challenger and their readings. `pull` moves all duels to the challenger, in units of the quality."""

    def __init__(
        self, rng: np.random.Generator, duels: int, flaw: Flaw | None, *, pull: float = 0.0, repos: int = 0
    ) -> None:
        self.rng, self.n = rng, duels
        repos = repos or REPOS.get(duels, 12)
        self.repo = rng.integers(0, repos, duels)
        self.instance = self.repo * 1000 + rng.integers(0, max(2, duels // repos // 3), duels)
        effect = rng.normal(0, 0.45, repos)[self.repo]
        effect += rng.normal(0, 0.35, self.instance.max() + 1)[self.instance]
        self.quality = pull + effect + rng.normal(0, 0.8, duels)
        self.leak = rng.random(duels) < 0.2
        # Of a generator of its own, so that older worlds stay as they are.
        (apart,) = rng.spawn(1)
        self.markdown, self.courtesy = apart.binomial(1, [[0.3, 0.5], [0.3, 0.3]], (duels, 2, 2)).transpose(1, 0, 2)
        self.hour = np.arange(duels) * 24 // duels
        self.lengths = np.round(np.exp(rng.normal([5.0, 5.2], 0.4, (duels, 2)))).astype(int)
        # The challenger is of the family alpha, its opponent of beta.
        own = "alpha" if flaw == Flaw.OWN_FAMILY else "epsilon"
        self.families = {"sound-a": "gamma", "sound-b": "alpha", "judge-c": own}
        self.says = {"sound-a": self.sound(), "sound-b": self.sound()}
        self.says["judge-c"] = FLAWED[flaw](self) if flaw else self.sound()
        self.attempts = {name: np.ones((duels, 2), dtype=int) for name in PANEL}
        if flaw == Flaw.UNPARSED:
            tries = rng.geometric(0.6, (duels, 2))
            self.says["judge-c"][tries > 3] = -1
            self.attempts["judge-c"] = np.minimum(tries, 3)

    def latent(self) -> Floats:
        """Shape (duels, orders, dimensions): how far a sound judge prefers the challenger."""
        shape = (self.n, 2, DIMS)
        seen = self.quality + self.rng.normal(0, 0.4, self.n)
        by_dimension = self.rng.normal(0, 0.4, (self.n, 1, DIMS))
        return np.asarray(seen[:, None, None] + by_dimension + self.rng.normal(0, 0.6, shape))

    def sound(self) -> Ints:
        return replies(self.latent())

    def shifted(self, by: NDArray[Any] | float) -> Ints:
        return replies(self.latent() + np.reshape(by, (-1, 1, 1)))

    @property
    def judged(self) -> list[JudgedDuel]:
        return [self._judged(row) for row in range(self.n)]

    def gated(self, judged: list[JudgedDuel]) -> list[GateDuel]:
        return [
            GateDuel(duel.score, f"r{self.repo[row]}", duel.instance_id, duel.leak) for row, duel in enumerate(judged)
        ]

    def gated_by(self, *judges: str) -> list[GateDuel]:
        """The duels as a panel of these judges alone has read them."""
        return [replace(duel, score=_of(duel.score, judges)) for duel in self.gated(self.judged)]

    def _style(self, row: int, side: int) -> dict[str, int]:
        return {"markdown": int(self.markdown[row, side]), "courtesy": int(self.courtesy[row, side])}

    def _judged(self, row: int) -> JudgedDuel:
        verdicts, judges = [], []
        for name in PANEL:
            said = self.says[name][row]
            for order, reply in enumerate(said):
                dimensions = None if reply[0] < 0 else dict(zip(DIMENSIONS, reply.tolist(), strict=True))
                attempts = int(self.attempts[name][row, order])
                verdicts.append(OrderedVerdict(name, ORDERS[order], dimensions, attempts))
            if (said >= 0).all():
                judges.append(merged(name, said))
        parsed = len(judges) == len(PANEL)
        score = 100 * sum(judge.score for judge in judges) / len(judges) if parsed else None
        king, challenger = self.lengths[row].tolist()
        return JudgedDuel(
            tuple(verdicts),
            DuelScore(score, {}, tuple(judges), parsed=parsed, flipped=False, spread=0.0),
            instance_id=f"i{self.instance[row]}",
            leak=bool(self.leak[row]),
            lengths=(king, challenger),
            families=("beta", "alpha"),
            repo=f"r{self.repo[row]}",
            hour=int(self.hour[row]),
            style=(self._style(row, 0), self._style(row, 1)),
        )


def on_controls(
    *judges: str, told: int = 15, known: int = 15, false: int = 0, same: int = 8
) -> dict[str, ControlFigures]:
    """Judges that are right in `told` of `known` controls with a winner, and prefer one of two equal answers in
    `false` of `same`, in both orders."""
    equal = clustered_wilson([(2, 2)] * false + [(0, 2)] * (same - false))
    share = false / same if same else None
    return {
        judge: ControlFigures(
            judge=judge,
            n=known + same,
            accuracy=(told + same - false) / (known + same) if known + same else None,
            accuracy_interval=FLAT,
            bribes=0,
            bribed=0,
            by_kind={},
            told=told,
            known=known,
            false_preference=share,
            false_preference_interval=equal,
        )
        for judge in judges
    }


def replies(latent: Floats) -> Ints:
    """Seat terms: with the king first the challenger is 2, with the challenger first it is 1; 0 is a draw."""
    challenger = np.array([2, 1]).reshape(1, 2, 1)
    said: Ints = np.where(np.abs(latent) < DRAW, 0, np.where(latent > 0, challenger, 3 - challenger))
    return said


def merged(judge: str, said: Ints) -> JudgeScore:
    points = [(0.5, 0.0, 1.0), (0.5, 1.0, 0.0)]
    both = [[points[order][value] for value in said[order]] for order in range(2)]
    flips = tuple(name for name, one, two in zip(DIMENSIONS, *both, strict=True) if one != two)
    dims = {name: 0.5 if one != two else one for name, one, two in zip(DIMENSIONS, *both, strict=True)}
    return JudgeScore(judge, sum(dims.values()) / DIMS, dims, flips)


def _of(score: DuelScore, judges: tuple[str, ...]) -> DuelScore:
    kept = tuple(judge for judge in score.judges if judge.judge in judges)
    return replace(score, judges=kept, score=100 * sum(judge.score for judge in kept) / len(judges))


def _first_seat(world: World) -> Ints:
    # With the king first the first seat is the king's.
    return replies(world.latent() + np.array([-1.0, 1.0]).reshape(1, 2, 1))


def _copied(world: World) -> Ints:
    said = world.says["sound-a"].copy()
    changed = world.rng.random(said.shape) < 0.02
    said[changed] = world.rng.integers(0, 3, said.shape)[changed]
    return said


def _same(*values: int) -> Callable[[World], Ints]:
    return lambda world: np.tile(np.array(values), (world.n, 2, 1))


def _one_repository(world: World) -> Ints:
    world.repo = world.instance // 1000 % 3
    return world.shifted(2.0 * (world.repo == 1))


FLAWED: dict[Flaw, Callable[[World], Ints]] = {
    Flaw.POSITION: _first_seat,
    Flaw.LENGTH: lambda world: world.shifted(1.5 * np.log2(world.lengths[:, 1] / world.lengths[:, 0])),
    Flaw.OWN_FAMILY: lambda world: world.shifted(1.2),
    Flaw.RANDOM: lambda world: world.rng.integers(0, 3, (world.n, 2, DIMS)),
    Flaw.DRAWS: _same(0, 0, 0, 0, 0),
    Flaw.CONSTANT: _same(1, 2, 1, 0, 1),
    Flaw.CONTRARIAN: lambda world: replies(-world.latent()),
    Flaw.COPY: _copied,
    Flaw.UNPARSED: World.sound,
    Flaw.DRIFT: lambda world: world.shifted(np.linspace(0, 2.5, world.n)),
    Flaw.MARKDOWN: lambda world: world.shifted(1.2 * (world.markdown[:, 1] - world.markdown[:, 0])),
    Flaw.COURTESY: lambda world: world.shifted(1.2 * (world.courtesy[:, 1] - world.courtesy[:, 0])),
    Flaw.REPOSITORY: _one_repository,
    Flaw.HOURS: lambda world: world.shifted(2.0 * (world.hour // 6 == 1)),
    Flaw.LEAK: lambda world: world.shifted(2.5 * world.leak),
}
