"""pass@1, pass@k and pass^k: unbiased by enumeration, and intervals that cover the truth."""

import random
from itertools import combinations

import krippendorff
import numpy as np
import pytest
from scipy import stats

from judging.statistics.agreement import group_agreement, pair_agreement
from judging.statistics.rates import (
    Attempts,
    Precision,
    Stratum,
    expected_precision,
    mean_pass_at,
    mean_pass_hat,
    pass_at_k,
    pass_hat_k,
)


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


WORDS = ("approve", "reject", "refine")


def test_alpha_is_that_of_the_library_with_people_who_decided_different_samples() -> None:
    drawn = np.random.default_rng(3)
    codes = drawn.integers(0, 3, size=(4, 60)).astype(float)
    codes[:, ::2] = codes[0, ::2]
    codes[drawn.random(codes.shape) < 0.3] = np.nan
    units = [[WORDS[int(code)] for code in column if not np.isnan(code)] for column in codes.T]
    found = group_agreement(units)
    assert found.value == pytest.approx(krippendorff.alpha(reliability_data=codes, level_of_measurement="nominal"))
    assert found.interval is not None and found.value is not None
    assert 0.1 < found.interval.high - found.interval.low < 0.5
    assert found.n == sum(len(unit) > 1 for unit in units)


def test_the_interval_covers_the_true_value_as_often_as_it_says() -> None:
    drawn, truth, covered = np.random.default_rng(5), 0.6**2, 0
    # Both say a fair coin's word with probability 0.4 each, else the sample's own: alpha of the population is 0.36.
    for number in range(200):
        own = drawn.integers(0, 2, size=(1, 80)).repeat(2, axis=0)
        said = np.where(drawn.random((2, 80)) < 0.4, drawn.integers(0, 2, size=(2, 80)), own)
        interval = group_agreement([[WORDS[one], WORDS[two]] for one, two in said.T], seed=number).interval
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    assert 180 <= covered <= 198


def test_full_agreement_of_a_few_has_a_wide_interval() -> None:
    units = [["approve"] * 2] * 8 + [["reject"] * 2] * 7
    for found in (group_agreement(units), pair_agreement([(one, two) for one, two in units])):
        assert found.value == 1 and found.interval is not None
        assert 0.4 < found.interval.low < 0.7 and found.interval.high == 1


@pytest.mark.parametrize("units", [[["approve", "reject"]] * 9, [["approve"]] * 50, [["approve", "approve"]] * 50, []])
def test_too_few_samples_and_one_value_only_give_no_figure(units: list[list[str]]) -> None:
    assert group_agreement(units).value is None and group_agreement(units).interval is None


def test_one_stratum_has_the_interval_of_wilson_as_scipy_computes_it() -> None:
    found = expected_precision([Stratum(samples=900, decided=40, approved=33)])
    wilson = stats.binomtest(33, 40).proportion_ci(method="wilson")
    assert found.share == pytest.approx(33 / 40)
    assert [found.interval.low, found.interval.high] == pytest.approx([wilson.low, wilson.high])
    assert (found.samples, found.decided, found.approved, found.unknown) == (900, 40, 33, 0)


def test_a_stratum_weighs_by_its_samples_and_not_by_its_decisions() -> None:
    # People decided mostly samples near the edge, which are worse; most samples are far from it.
    found = expected_precision([Stratum(100, 90, 45), Stratum(900, 10, 10)])
    assert found.share == pytest.approx(0.1 * 0.5 + 0.9 * 1.0)


def test_samples_in_a_stratum_without_a_decision_leave_the_share_open() -> None:
    found = expected_precision([Stratum(50, 50, 50), Stratum(50, 0, 0)])
    assert found.share is None
    assert found.unknown == 50
    assert found.interval.low <= 0.5 and found.interval.high == pytest.approx(1.0)


@pytest.mark.parametrize("strata", [[], [Stratum(0, 0, 0)], [Stratum(7, 0, 0)]])
def test_without_a_decision_nothing_is_known(strata: list[Stratum]) -> None:
    found = expected_precision(strata)
    assert (found.share, found.interval.low, found.interval.high) == (None, 0.0, 1.0)


def test_intervals_cover_the_rate_of_all_samples_where_people_decide_those_near_the_edge_first() -> None:
    draw = random.Random(4)
    rates, decided_shares = (0.55, 0.75, 0.9, 0.97), (0.5, 0.2, 0.1, 0.05)

    def world() -> tuple[Precision, float, float]:
        strata, approved = [], 0
        for rate, share in zip(rates, decided_shares, strict=True):
            people = [draw.random() < rate for _ in range(200)]
            seen = people[: int(200 * share)]
            strata.append(Stratum(200, len(seen), sum(seen)))
            approved += sum(people)
        found = expected_precision(strata)
        return found, approved / 800, found.approved / found.decided

    worlds = [world() for _ in range(400)]
    covered = [found.interval.low <= truth <= found.interval.high for found, truth, _ in worlds]
    # The rate of the decided ones alone is far too low.
    naive_error = sum(truth - naive for _, truth, naive in worlds) / len(worlds)
    error = sum(truth - (found.share or 0) for found, truth, _ in worlds) / len(worlds)
    assert sum(covered) / len(covered) >= 0.95
    assert naive_error > 0.1 and abs(error) < 0.01
