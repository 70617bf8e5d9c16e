"""The share that people approve, estimated where they have decided only some samples."""

import random

import pytest
from scipy import stats

from judging.statistics.precision import Precision, Stratum, expected_precision


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
