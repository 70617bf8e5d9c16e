"""Actions with known success rates: the chances of all courses of a probe are added up, so no draw decides a test."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from judging.statistics.values import ActionVerdict, Advantage, Value, advantage

ROUNDS, SAMPLES = 3, 8
MOST = ROUNDS * SAMPLES
DECIDED = (ActionVerdict.BETTER, ActionVerdict.WORSE, ActionVerdict.ALIKE)
Grid = NDArray[np.float64]


class End(NamedTuple):
    chance: float
    value: Value
    found: Advantage


@cache
def compared(one: int, two: int, rollouts: int) -> Advantage:
    return advantage(Value(one, rollouts), Value(two, rollouts), looks=ROUNDS + 1)


def more(p: float) -> Grid:
    """The chance of each number of solved rollouts after a round, by the number before."""
    solved = np.arange(MOST + 1)
    chances: Grid = binom.pmf(solved[None, :] - solved[:, None], SAMPLES, p)
    return chances


def ends(p: float, other: float) -> Iterator[End]:
    """The ends of a probe of two actions: rounds of rollouts until it is decided."""
    goes_on = np.zeros((MOST + 1, MOST + 1))
    goes_on[0, 0] = 1
    for rollouts in range(SAMPLES, MOST + 1, SAMPLES):
        goes_on = more(p).T @ goes_on @ more(other)
        for one, two in product(range(rollouts + 1), repeat=2):
            found = compared(one, two, rollouts)
            if rollouts == MOST or found.verdict in DECIDED:
                yield End(goes_on[one, two], Value(one, rollouts), found)
                goes_on[one, two] = 0


def chance(p: float, other: float, *verdicts: ActionVerdict) -> float:
    return sum(end.chance for end in ends(p, other) if end.found.verdict in verdicts)


def test_values_and_advantages_are_within_their_intervals_in_95_of_100_cells() -> None:
    """200 cells, whose rates are spread over all rates."""
    cells = [((number + 0.5) / 200, (number * 77 % 200 + 0.5) / 200) for number in range(200)]
    values = advantages = 0.0
    for p, other in cells:
        for end in ends(p, other):
            interval = end.value.interval(looks=ROUNDS + 1)
            values += end.chance * (interval.low <= p <= interval.high)
            advantages += end.chance * (end.found.interval.low <= p - other <= end.found.interval.high)
    assert values >= 190 and advantages >= 190


@pytest.mark.parametrize("p", [*(number / 20 for number in range(21)), 0.03, 0.97])
def test_harmless_noise_is_rarely_better(p: float) -> None:
    assert chance(p, p, ActionVerdict.BETTER) <= 0.05
    assert chance(p, p, ActionVerdict.BETTER, ActionVerdict.LIKELY) <= 0.15


def test_a_large_advantage_is_proven_with_few_rollouts() -> None:
    assert chance(0.95, 0.1, ActionVerdict.BETTER) >= 0.99
    soon = sum(end.chance for end in ends(0.95, 0.1) if end.value.rollouts == SAMPLES)
    assert soon >= 0.8


def test_an_action_that_ended_the_episode_needs_no_rollouts() -> None:
    found = advantage(Value(8, 8), Value(0, 1, ended=True), looks=4)
    assert found.verdict is ActionVerdict.BETTER
    assert advantage(Value(1, 1, ended=True), Value(1, 1, ended=True)).verdict is ActionVerdict.ALIKE


def test_nothing_is_known_without_rollouts() -> None:
    found = advantage(Value(0, 0), Value(5, 5))
    assert (found.difference, found.interval.low, found.interval.high, found.verdict) == (
        0.0,
        -1.0,
        1.0,
        ActionVerdict.OPEN,
    )
