"""pass@1, pass@k and pass^k: unbiased by enumeration, and intervals that cover the truth."""

from itertools import combinations

import numpy as np
import pytest

from judging.statistics.attempts import Attempts, mean_pass_at, mean_pass_hat, pass_at_k, pass_hat_k


@pytest.mark.parametrize(("solved", "attempts"), [(0, 4), (1, 4), (3, 5), (5, 5)])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_they_are_the_shares_of_all_sets(solved: int, attempts: int, k: int) -> None:
    sets = list(combinations([True] * solved + [False] * (attempts - solved), k))
    task = Attempts(solved, attempts)
    assert pass_at_k(task, k) == pytest.approx(sum(map(any, sets)) / len(sets))
    assert pass_hat_k(task, k) == pytest.approx(sum(map(all, sets)) / len(sets))


def test_a_task_with_fewer_attempts_is_left_out_and_counted() -> None:
    found = mean_pass_at([Attempts(1, 4), Attempts(1, 1)], 2)
    assert found is not None and (found.tasks, found.left_out, found.value) == (1, 1, 0.5)
    assert mean_pass_hat([Attempts(1, 1)], 2) is None and mean_pass_at([], 1) is None


def test_one_attempt_of_each_task_has_wilson_s_interval() -> None:
    found = mean_pass_at([Attempts(1, 1)] * 7 + [Attempts(0, 1)] * 3, 1)
    assert found is not None and (round(found.interval.low, 3), round(found.interval.high, 3)) == (0.397, 0.892)


def test_ten_attempts_at_alike_tasks_are_not_ten_tasks() -> None:
    all_or_nothing = mean_pass_at([Attempts(10, 10)] * 5 + [Attempts(0, 10)] * 5, 1)
    halves = mean_pass_at([Attempts(5, 10)] * 10, 1)
    assert all_or_nothing is not None and halves is not None
    assert all_or_nothing.interval.low < 0.25 < 0.39 < halves.interval.low


@pytest.mark.parametrize("k", [1, 3])
def test_intervals_cover_the_truth(k: int) -> None:
    rng = np.random.default_rng(1)
    easy = rng.beta(0.7, 0.7, size=100_000)
    truths = {mean_pass_at: float((1 - (1 - easy) ** k).mean()), mean_pass_hat: float((easy**k).mean())}
    for estimate, truth in truths.items():
        covered = 0
        for _ in range(400):
            solved = rng.binomial(6, rng.choice(easy, size=30))
            found = estimate([Attempts(int(one), 6) for one in solved], k)
            assert found is not None
            covered += found.interval.low <= truth <= found.interval.high
        assert covered >= 0.92 * 400
