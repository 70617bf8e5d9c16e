"""Tails and quantiles, held against SciPy's over the whole range that the statistics use."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from judging.statistics import distributions

FREEDOM = st.integers(1, 100_000)


@given(FREEDOM, st.floats(-60, 60))
@example(1, 0.0)
@example(99_999, -1.96)
def test_students_t_is_scipys(freedom: int, t: float) -> None:
    assert distributions.t_cdf(freedom, t) == pytest.approx(special.stdtr(freedom, t), rel=1e-8, abs=1e-290)


@given(FREEDOM, st.floats(1e-9, 1 - 1e-9))
@example(1, 0.5)
@example(4, 0.025)
def test_the_quantile_of_students_t_is_scipys(freedom: int, p: float) -> None:
    assert distributions.t_quantile(freedom, p) == pytest.approx(special.stdtrit(freedom, p), rel=1e-6, abs=1e-9)


@given(st.floats(-37, 37), st.floats(1e-300, 1, exclude_max=True))
def test_the_normal_distribution_is_scipys(z: float, p: float) -> None:
    assert distributions.normal_cdf(z) == pytest.approx(special.ndtr(z), rel=1e-12)
    assert distributions.normal_quantile(p) == pytest.approx(special.ndtri(p), rel=1e-12, abs=1e-12)


@given(st.data(), st.integers(1, 100_000), st.sampled_from([0.01, 0.05, 0.5, 0.9]))
def test_the_binomial_distribution_is_scipys(data: st.DataObject, of: int, chance: float) -> None:
    count = data.draw(st.integers(0, of))
    below, above = special.bdtr(count, of, chance), special.bdtrc(count - 1, of, chance) if count else 1.0
    assert distributions.binomial_cdf(count, of, chance) == pytest.approx(below, rel=1e-8, abs=1e-290)
    assert distributions.binomial_tail(count, of, chance) == pytest.approx(above, rel=1e-8, abs=1e-290)


def test_the_binomial_distribution_of_few_is_exact() -> None:
    exact = [math.comb(5, count) / 32 for count in range(6)]
    assert [distributions.binomial_cdf(count, 5, 0.5) for count in range(6)] == pytest.approx(
        [sum(exact[: count + 1]) for count in range(6)], rel=1e-14
    )
    assert [distributions.binomial_tail(count, 5, 0.5) for count in range(6)] == pytest.approx(
        [sum(exact[count:]) for count in range(6)], rel=1e-14
    )
