"""Where the first judge is sure enough that the full panel need not read a duel."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pydantic import Field

from curation.duels.params import JudgeParams, Panel, panel_of
from curation.duels.score.readings import VerdictRow, readings_of_run
from curation.duels.verdict.stage import duels_of
from curation.projects.settings.document import ProjectSettings
from curation.runs.models import Run
from judging.panel.scoring import Thresholds, bucket_for, score_duel
from judging.statistics.guarantee import SetLevel, levels_of, proven, thresholds_of

CHUNK = 1_000


class CascadeParams(JudgeParams):
    """`judges` is the full panel, to which `model`, the judge that reads first, belongs."""

    model: str = Field(description="The judge that reads every duel, usually the cheapest.")
    size: int = Field(150, ge=1, le=5_000, description="Duels, drawn at random, that the full panel also reads.")
    alpha: float = Field(
        0.05, ge=0.001, le=0.5, description="The tolerated share of duels that would have another bucket by all judges."
    )
    delta: float = Field(
        0.05, ge=0.001, le=0.5, description="The chance that the promise is wrong: 0.05 is 95 % confidence."
    )
    seed: int = Field(0, description="Set at launch: of the draw.")


@dataclass(frozen=True, slots=True)
class ParsedDuel:
    """A duel that the first judge parsed. `confidence` is 0 where its score is at the edge of a bucket, and 1 where it
    is as far from one as it can be. `differs`: the full panel gives another bucket, or none."""

    duel: int
    confidence: float
    differs: bool


@dataclass(frozen=True, slots=True)
class CascadeSplit:
    """The random part that the full panel read too, `drawn`, and the other duels where the first judge is sure enough.
    Of these `level` promises that at most α would have another bucket; None: nothing is proven, and `duels` is
    empty."""

    drawn: Sequence[ParsedDuel]
    level: SetLevel | None
    duels: frozenset[int]


def drawn_duels(run: Run, params: CascadeParams) -> list[int]:
    """Return the simple random sample of the duels that the first judge parsed, which the full panel reads too."""
    return [one.duel for one in _drawn(_compared(run, params), params)]


def sure_of(run: Run, params: CascadeParams) -> CascadeSplit:
    """Test confidences from high to low, as an audit tests scores (`judging.statistics.guarantee`)."""
    compared = _compared(run, params)
    drawn = _drawn(compared, params)
    if not drawn:
        return CascadeSplit((), None, frozenset())
    thresholds, counts = thresholds_of([one.confidence for one in compared])
    confidences, differs = [one.confidence for one in drawn], [one.differs for one in drawn]
    levels = levels_of(thresholds.tolist(), counts.tolist(), confidences, differs)
    level = proven(levels, params.alpha, params.delta)
    if level is None:
        return CascadeSplit(drawn, None, frozenset())
    seen = {one.duel for one in drawn}
    above = (one.duel for one in compared if one.confidence >= level.threshold and one.duel not in seen)
    return CascadeSplit(drawn, level, frozenset(above))


def _drawn(compared: Sequence[ParsedDuel], params: CascadeParams) -> list[ParsedDuel]:
    """Those with the lowest hashes: a duel that is parsed later changes nothing about the order of the others."""

    def place(one: ParsedDuel) -> bytes:
        return hashlib.sha256(f"{params.seed}:{one.duel}".encode()).digest()

    return sorted(compared, key=place)[: params.size]


def _compared(run: Run, params: CascadeParams) -> list[ParsedDuel]:
    panel, limits = panel_of(run.settings, params), thresholds(run.settings)
    duels, found = duels_of(run), list[ParsedDuel]()
    while chunk := list(islice(duels, CHUNK)):
        for duel, readings in readings_of_run(run, chunk, panel.orders).items():
            first = score_of(readings.verdicts, panel, panel.judges[:1])
            if first is not None:
                full = score_of(readings.verdicts, panel, panel.judges)
                differs = full is None or _bucket(full, limits) != _bucket(first, limits)
                found.append(ParsedDuel(duel, confidence_of(first, limits), differs))
    return found


def score_of(verdicts: Sequence[VerdictRow], panel: Panel, judges: Sequence[str]) -> float | None:
    """The score by these judges; None unless all of them parsed."""
    read = [row.ordered() for row in verdicts]
    return score_duel(read, panel=judges, orders=panel.orders, weights=panel.weights).score


def confidence_of(score: float, limits: Thresholds) -> float:
    """Return the distance to the nearest edge of the score's bucket, as a share of the largest in that bucket."""
    if score >= limits.final:
        return (score - limits.final) / (100 - limits.final) if limits.final < 100 else 1.0
    if score < limits.refined:
        return (limits.refined - score) / limits.refined
    return 2 * min(score - limits.refined, limits.final - score) / (limits.final - limits.refined)


def thresholds(settings: ProjectSettings) -> Thresholds:
    return Thresholds(final=settings.thresholds.final, refined=settings.thresholds.refined)


def _bucket(score: float, limits: Thresholds) -> str:
    return bucket_for(score, flags=(), thresholds=limits)


def chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]
