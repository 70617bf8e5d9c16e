"""The acceptance gate against hand-computed cases and an independent, slow reference."""

import itertools
import random
import statistics
import time

import pytest

from judging.statistics.acceptance import GateSettings, acceptance


def exact_bound(groups: list[list[float]], quantile: float) -> float:
    """All resamples of few clusters, each as likely as the other; the quantile with linear interpolation, by hand."""
    means = []
    for drawn in itertools.product(groups, repeat=len(groups)):
        turns = [(score / 100) - 0.5 for group in drawn for score in group]
        means.append(sum(turns) / len(turns))
    means.sort()
    position = quantile * (len(means) - 1)
    low = int(position)
    high = min(low + 1, len(means) - 1)
    return means[low] + (means[high] - means[low]) * (position - low)


def slow_bound(groups: list[list[float]], quantile: float, resamples: int, seed: int) -> float:
    rng = random.Random(seed)
    means = []
    for _ in range(resamples):
        turns = [score / 100 - 0.5 for _ in groups for score in rng.choice(groups)]
        means.append(statistics.fmean(turns))
    return sorted(means)[int(quantile * resamples)]


def grouped(scores: list[float], clusters: list[str]) -> list[list[float]]:
    return [[s for s, c in zip(scores, clusters, strict=True) if c == name] for name in sorted(set(clusters))]


def test_margin_and_acceptance_by_hand() -> None:
    result = acceptance([65.0] * 50, [f"i{n % 6}" for n in range(50)], done=50)
    assert (result.margin, result.lcb, result.lcb_unclustered) == (30.0, 0.15, 0.15)
    assert (result.parsed, result.done, result.accepted, result.reasons) == (50, 50, True, ())


def test_an_even_run_is_not_accepted_and_says_why() -> None:
    result = acceptance([50.0] * 20, [""] * 20, done=50)
    assert (result.margin, result.lcb, result.accepted) == (0.0, 0.0, False)
    assert len(result.reasons) == 3
    assert "20 of 50" in result.reasons[0]


def test_half_parsed_is_just_enough() -> None:
    assert acceptance([80.0] * 10, [""] * 10, done=20).accepted
    assert not acceptance([80.0] * 10, [""] * 10, done=21).accepted


def test_a_margin_on_the_edge_is_accepted() -> None:
    assert acceptance([51.0] * 10, [""] * 10, done=10).accepted
    assert not acceptance([50.9] * 10, [""] * 10, done=10).accepted


def test_nothing_parsed_has_no_figures() -> None:
    result = acceptance([], [], done=7)
    assert (result.margin, result.lcb, result.lcb_unclustered, result.accepted) == (None, None, None, False)
    assert result.reasons == ("no duel was parsed",)
    assert acceptance([], [], done=0).reasons == ("no duel was done",)


def test_clusters_widen_the_bound_when_turns_of_one_request_agree() -> None:
    # One request with 30 won turns, nine with one lost turn each: by turns a clear win, by requests a single lucky one.
    scores = [100.0] * 30 + [30.0] * 9
    clusters = ["big"] * 30 + [f"small{n}" for n in range(9)]
    result = acceptance(scores, clusters, done=39)
    assert result.margin == pytest.approx(2 * (3000 + 270) / 39 - 100)
    assert result.lcb_unclustered is not None
    assert result.lcb is not None
    assert result.lcb_unclustered > 0.2
    # With probability 0.9 ** 10 = 0.35 the big one is not drawn at all, and the mean is exactly -0.2.
    assert result.lcb == pytest.approx(-0.2, abs=1e-9)
    assert not result.accepted


def test_against_all_resamples_of_few_clusters() -> None:
    scores = [90.0, 70.0, 40.0, 55.0, 62.0, 80.0, 20.0]
    clusters = ["a", "a", "b", "c", "c", "c", "d"]
    settings = GateSettings(resamples=200_000)
    result = acceptance(scores, clusters, done=7, settings=settings)
    assert result.lcb == pytest.approx(exact_bound(grouped(scores, clusters), 0.05), abs=2e-3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_against_a_slow_reference(seed: int) -> None:
    rng = random.Random(seed)
    scores = [rng.choice([20.0, 50.0, 65.0, 80.0, 100.0]) for _ in range(120)]
    clusters = [f"i{rng.randrange(25)}" for _ in scores]
    result = acceptance(scores, clusters, done=120, settings=GateSettings(seed=seed))
    assert result.lcb == pytest.approx(slow_bound(grouped(scores, clusters), 0.05, 4000, seed), abs=6e-3)
    plain = slow_bound([[s] for s in scores], 0.05, 4000, seed)
    assert result.lcb_unclustered == pytest.approx(plain, abs=6e-3)


def test_the_seed_decides_and_the_order_of_rows_does_not() -> None:
    rng = random.Random(9)
    rows = [(rng.uniform(0, 100), f"i{rng.randrange(12)}") for _ in range(80)]
    shuffled = rows[:]
    rng.shuffle(shuffled)
    one, two = (acceptance([s for s, _ in r], [c for _, c in r], done=80) for r in (rows, shuffled))
    assert (one.lcb, one.lcb_unclustered) == pytest.approx((two.lcb, two.lcb_unclustered), abs=1e-9)
    other = acceptance([s for s, _ in rows], [c for _, c in rows], done=80, settings=GateSettings(seed=1))
    assert other.lcb != one.lcb


def test_an_empty_instance_id_is_a_cluster_of_its_own() -> None:
    scores = [float(n) for n in range(100)]
    result = acceptance(scores, [""] * 100, done=100)
    assert result.lcb == result.lcb_unclustered


def test_five_thousand_duels_take_at_most_three_seconds() -> None:
    rng = random.Random(4)
    scores = [rng.choice([20.0, 50.0, 65.0, 80.0]) for _ in range(5000)]
    started = time.process_time()
    acceptance(scores, [f"i{rng.randrange(900)}" for _ in scores], done=5000)
    assert time.process_time() - started < 3.0


def test_input_that_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match="clusters"):
        acceptance([50.0], [], done=1)
    with pytest.raises(ValueError, match="parsed"):
        acceptance([50.0], ["a"], done=0)
    with pytest.raises(ValueError, match="between 0 and 100"):
        acceptance([101.0], ["a"], done=1)
    with pytest.raises(ValueError, match="out of range"):
        GateSettings(quantile=0)
