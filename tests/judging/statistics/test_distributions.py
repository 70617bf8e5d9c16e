"""The tails that the statistics ask for, at the ends of their ranges."""

import math

import pytest

from judging.statistics import distributions


def test_the_binomial_distribution_of_few_is_exact() -> None:
    exact = [math.comb(5, count) / 32 for count in range(6)]
    assert [distributions.binomial_cdf(count, 5, 0.5) for count in range(6)] == pytest.approx(
        [sum(exact[: count + 1]) for count in range(6)], rel=1e-14
    )
    assert [distributions.binomial_tail(count, 5, 0.5) for count in range(6)] == pytest.approx(
        [sum(exact[count:]) for count in range(6)], rel=1e-14
    )


def test_none_and_all_are_certain() -> None:
    assert distributions.binomial_tail(0, 7, 0.3) == distributions.binomial_cdf(7, 7, 0.3) == 1.0


def test_what_a_few_equal_ones_do_not_rule_out() -> None:
    assert (1 - distributions.unseen_share(7, 0.05)) ** 7 == pytest.approx(0.05)
