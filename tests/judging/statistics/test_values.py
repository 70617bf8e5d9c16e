import random

import pytest

from judging.statistics.values import Value, Verdict, advantage

ROUNDS, SAMPLES = 3, 8


def probed(chance: random.Random, p: float, other: float, margin: float = 0.2) -> tuple[Value, Value, Verdict]:
    """Two actions with known success rates, compared as a probe does: rounds of rollouts until it is decided."""
    one, two = Value(0, 0), Value(0, 0)
    for _ in range(ROUNDS):
        found = advantage(one, two, looks=ROUNDS + 1, margin=margin).verdict
        if found in (Verdict.BETTER, Verdict.WORSE, Verdict.ALIKE):
            break
        one = Value(one.solved + sum(chance.random() < p for _ in range(SAMPLES)), one.rollouts + SAMPLES)
        two = Value(two.solved + sum(chance.random() < other for _ in range(SAMPLES)), two.rollouts + SAMPLES)
    return one, two, advantage(one, two, looks=ROUNDS + 1, margin=margin).verdict


def test_values_and_advantages_are_within_their_intervals() -> None:
    chance = random.Random(32)
    values = advantages = 0
    for _ in range(200):
        p, other = chance.random(), chance.random()
        one, two, _ = probed(chance, p, other)
        found = advantage(one, two, looks=ROUNDS + 1)
        values += one.interval(looks=ROUNDS + 1).low <= p <= one.interval(looks=ROUNDS + 1).high
        advantages += found.interval.low <= p - other <= found.interval.high
    assert values >= 190 and advantages >= 190


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.8, 0.97])
def test_harmless_noise_is_rarely_better(p: float) -> None:
    chance = random.Random(7)
    verdicts = [probed(chance, p, p)[2] for _ in range(1000)]
    assert verdicts.count(Verdict.BETTER) <= 50
    assert verdicts.count(Verdict.BETTER) + verdicts.count(Verdict.LIKELY) <= 150


def test_a_large_advantage_is_proven_with_few_rollouts() -> None:
    chance = random.Random(1)
    found = [probed(chance, 0.95, 0.1) for _ in range(100)]
    assert sum(verdict is Verdict.BETTER for _, _, verdict in found) >= 99
    assert sum(one.rollouts == SAMPLES for one, _, _ in found) >= 80


def test_an_action_that_ended_the_episode_needs_no_rollouts() -> None:
    found = advantage(Value(8, 8), Value(0, 1, ended=True), looks=4)
    assert found.verdict is Verdict.BETTER
    assert advantage(Value(1, 1, ended=True), Value(1, 1, ended=True)).verdict is Verdict.ALIKE


def test_nothing_is_known_without_rollouts() -> None:
    found = advantage(Value(0, 0), Value(5, 5))
    assert (found.difference, found.interval.low, found.interval.high, found.verdict) == (0.0, -1.0, 1.0, Verdict.OPEN)
