"""Simulated audits: worlds of samples whose answers are known, so that a broken promise is seen.

A cell is a kind of world. Each of its worlds has samples in the order of their scores, an answer for each that people
would give, an audit of some of them, and the approval that the product would make of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import bdtr, expit, ndtri

from judging.statistics.guarantee import STEPS, chance_if_broken, last_passed

ALPHA = DELTA = 0.05
CLUSTER = 20
# How often each of two reviewers takes an error for none, or the other way round.
NOISE = 0.03
# Of a good score: 95 of 100 pairs of an error and another sample are ordered rightly.
STEEP = 3.5
AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class Cell:
    """`rate` is the share of errors among all samples; `score` is good, useless or adversarial (the best scores are the
    worst samples). `clustered`: samples come in repositories of 20, most of which are all right or all wrong. `noisy`:
    each look is by one of two reviewers, who err, and the promise is about the truth."""

    samples: int
    looks: int
    rate: float
    score: str
    clustered: bool = False
    noisy: bool = False

    @property
    def name(self) -> str:
        return f"{self.score}{', clusters' * self.clustered}{', two noisy reviewers' * self.noisy}"


class Result(NamedTuple):
    """Shares of worlds, and mean shares of the unseen samples: `approved`, and what an `oracle` that knows all answers
    could approve. `by_eye` approves from the loosest threshold whose looks have at most α of errors."""

    broken: float
    approved: float
    oracle: float
    by_eye_broken: float
    by_eye: float


def run(cell: Cell, *, worlds: int, seed: int = 0) -> Result:
    rng = np.random.default_rng(seed)
    chances = _chances(cell)
    size = max(1, AT_ONCE // cell.samples)
    parts = [_worlds(cell, chances, min(size, worlds - start), rng) for start in range(0, worlds, size)]
    return Result(*(float(np.concatenate(one).mean()) for one in zip(*parts, strict=True)))


def _chances(cell: Cell) -> NDArray[np.float64]:
    """The chance of an error of each sample, the best score first."""
    ranks = (np.arange(cell.samples) + 0.5) / cell.samples
    if cell.score == "useless":
        return np.full(cell.samples, cell.rate)
    quality = -ndtri(ranks)
    base = brentq(lambda shift: expit(shift - STEEP * quality).mean() - cell.rate, -30, 10)
    chances = expit(base - STEEP * quality)
    return chances if cell.score == "good" else chances[::-1]


def _worlds(
    cell: Cell, chances: NDArray[np.float64], worlds: int, rng: np.random.Generator
) -> tuple[NDArray[Any], ...]:
    shape = (worlds, cell.samples)
    clusters = np.arange(cell.samples) // CLUSTER
    if cell.clustered:
        # The samples of a repository share one draw in nine of ten cases, and are at all places of the order.
        clusters = rng.permuted(np.broadcast_to(clusters, shape), axis=1)
        shared = np.take_along_axis(rng.random((worlds, clusters.max() + 1)), clusters, axis=1)
        draws = np.where(rng.random(shape) < 0.9, shared, rng.random(shape))
    else:
        draws = rng.random(shape)
    truth = draws < chances
    said = truth ^ (rng.random(shape) < NOISE) if cell.noisy else truth
    order = np.argpartition(rng.random(shape), cell.looks, axis=1)[:, : cell.looks]
    looked = np.zeros(shape, dtype=bool)
    np.put_along_axis(looked, order, True, axis=1)

    ends = np.ceil(cell.samples * np.arange(1, STEPS + 1) / STEPS).astype(int) - 1
    looks, errors = (np.cumsum(one, axis=1)[:, ends] for one in (looked, looked & said))
    samples = np.broadcast_to(ends + 1, looks.shape)
    unseen = samples - looks
    p = chance_if_broken(errors, looks, samples, ALPHA, unseen)
    at_best = chance_if_broken(np.zeros_like(errors), looks, samples, ALPHA, unseen)
    if cell.clustered:
        count, wrong = _first_looks(order, clusters, said, ends)
        p = np.maximum(p, np.where(count, bdtr(wrong, count, ALPHA), 1.0))
        at_best = np.maximum(at_best, (1 - ALPHA) ** count)
    last = last_passed(p, at_best, DELTA)

    wrong_unseen, all_unseen = (np.cumsum(one, axis=1) for one in (~looked & truth, ~looked))

    def outcome(level: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        found = np.arange(worlds), ends[np.maximum(level, 0)]
        approved = np.where(level >= 0, all_unseen[found], 0)
        return (level >= 0) & (wrong_unseen[found] > ALPHA * approved + 1e-9), approved

    broken, approved = outcome(last)
    allowed = wrong_unseen <= ALPHA * all_unseen + 1e-9
    oracle = np.where(allowed, all_unseen, 0).max(axis=1)
    seems_fine = (errors <= ALPHA * looks) & (looks > 0)
    eye_broken, eye = outcome(np.where(seems_fine, np.arange(STEPS), -1).max(axis=1))
    rest = cell.samples - cell.looks
    return broken, approved / rest, oracle / rest, eye_broken, eye / rest


def _first_looks(
    order: NDArray[np.int64], clusters: NDArray[np.int64], said: NDArray[np.bool_], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per world and level the clusters with a look, and the errors among the first look at each."""
    count, wrong = np.zeros((len(order), len(ends)), int), np.zeros((len(order), len(ends)), int)
    for world, drawn in enumerate(order):
        for level, end in enumerate(ends):
            above = drawn[drawn <= end]
            _, first = np.unique(clusters[world][above], return_index=True)
            count[world, level], wrong[world, level] = len(first), said[world][above][first].sum()
    return count, wrong


SIZES = ((200, 150), (1_000, 300), (5_000, 300), (20_000, 300))
RATES = (0.02, 0.04, 0.05, 0.06, 0.1)
CELLS = (
    *(Cell(*size, rate, score) for size in SIZES for score in ("useless", "good", "adversarial") for rate in RATES),
    *(Cell(2_000, 300, rate, score, clustered=True) for score in ("useless", "good") for rate in RATES),
    *(Cell(2_000, 300, rate, score, noisy=True) for score in ("useless", "good") for rate in RATES),
)


def table(results: Mapping[Cell, Result]) -> str:
    """The results as a table: per kind of world a row, per share of errors a column with the worlds in which the
    promise is broken, and what is approved, as a share of what the oracle could approve."""
    rows: dict[tuple[str, int, int], list[str]] = {}
    for cell, found in results.items():
        share = found.approved / found.oracle if found.oracle else 0.0
        words = f"{100 * found.broken:.1f} %, {100 * share:.0f} %"
        rows.setdefault((cell.name, cell.samples, cell.looks), []).append(words)
    head = [f"{100 * rate:.0f} % errors" for rate in RATES]
    lines = [f"| score | samples | looks | {' | '.join(head)} |", f"| --- | ---: | ---: |{' ---: |' * len(head)}"]
    return "\n".join([*lines, *(f"| {name} | {n:,} | {m} | {' | '.join(row)} |" for (name, n, m), row in rows.items())])
