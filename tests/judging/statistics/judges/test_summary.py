"""The judges' table for fair, biased and broken judges."""

from collections.abc import Sequence
from typing import Any

import pytest

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import CHALLENGER_FIRST, KING_FIRST, ORDERS, OrderedVerdict, score_duel
from judging.statistics.judges.readings import JudgedDuel, panel_readings
from judging.statistics.judges.summary import JudgeSummary, mean_lengths, summarise

PANEL = ["fair", "first", "broken"]


def make_judged(fair: int) -> JudgedDuel:
    """`fair` is the side that the fair judge prefers on every dimension: 2 challenger, 1 king, 0 a draw."""
    mirrored = {1: 2, 2: 1, 0: 0}[fair]
    verdicts = (
        OrderedVerdict("fair", KING_FIRST, dict.fromkeys(DIMENSIONS, fair)),
        OrderedVerdict("fair", CHALLENGER_FIRST, dict.fromkeys(DIMENSIONS, mirrored)),
        *(OrderedVerdict("first", order, dict.fromkeys(DIMENSIONS, 1)) for order in ORDERS),
        *(OrderedVerdict("broken", order, None) for order in ORDERS),
    )
    return JudgedDuel(verdicts, score_duel(verdicts, panel=PANEL, min_judges=2))


def judge_summary(duels: Sequence[JudgedDuel], *, panel: Sequence[str], **families: Any) -> tuple[JudgeSummary, ...]:
    return summarise(panel_readings(duels, panel=panel, **families))


def rates(summary: JudgeSummary) -> dict[str, float | None]:
    return {name: getattr(summary, name) for name in ("n", "win_rate", "flip_rate", "parse_rate", "panel_agreement")}


def test_fair_biased_and_broken_judges() -> None:
    fair, first, broken = judge_summary([make_judged(2), make_judged(2), make_judged(0), make_judged(1)], panel=PANEL)
    # Two wins and a tie that counts half, of four. It agrees with the biased judge's ties only in the tie.
    assert rates(fair) == {"n": 4, "win_rate": 0.625, "flip_rate": 0.0, "parse_rate": 1.0, "panel_agreement": 0.25}
    assert rates(first) == {"n": 4, "win_rate": 0.5, "flip_rate": 1.0, "parse_rate": 1.0, "panel_agreement": 0.25}
    assert rates(broken) == {"n": 0, "win_rate": None, "flip_rate": None, "parse_rate": 0.0, "panel_agreement": None}
    assert fair.flips == dict.fromkeys(DIMENSIONS, 0.0) and first.flips == dict.fromkeys(DIMENSIONS, 1.0)
    assert (fair.first_share, first.first_share, broken.first_share) == (0.5, 1.0, None)
    assert (fair.draw_rate, first.draw_rate, broken.draw_rate) == (0.25, 0.0, None)
    assert fair.agreement == {"first": 0.25} and broken.agreement == {}
    assert fair.halves == (1.0, 0.25)


def test_a_judge_that_parsed_one_order_has_half_its_replies_but_no_say() -> None:
    verdicts = (
        OrderedVerdict("fair", KING_FIRST, dict.fromkeys(DIMENSIONS, 2)),
        OrderedVerdict("fair", CHALLENGER_FIRST, None),
    )
    (fair,) = judge_summary([JudgedDuel(verdicts, score_duel(verdicts, panel=["fair"]))], panel=["fair"])
    assert (fair.n, fair.parse_rate, fair.win_rate) == (0, 0.5, None)


def test_each_attempt_counts_in_the_parse_rate() -> None:
    verdicts = (
        OrderedVerdict("fair", KING_FIRST, None),
        OrderedVerdict("fair", KING_FIRST, dict.fromkeys(DIMENSIONS, 2)),
        OrderedVerdict("fair", CHALLENGER_FIRST, dict.fromkeys(DIMENSIONS, 1)),
    )
    (fair,) = judge_summary([JudgedDuel(verdicts, score_duel(verdicts, panel=["fair"]))], panel=["fair"])
    assert (fair.parse_rate, fair.win_rate, fair.panel_agreement) == (2 / 3, 1.0, None)
    again = (OrderedVerdict("fair", KING_FIRST, None, attempts=3), OrderedVerdict("fair", CHALLENGER_FIRST, None, 3))
    (silent,) = judge_summary([JudgedDuel(again, score_duel(again, panel=["fair"]))] * 2, panel=["fair"])
    assert (silent.parse_rate, silent.n) == (0.0, 0)


def test_no_duels() -> None:
    (nobody,) = judge_summary([], panel=["a"])
    assert (nobody.n, nobody.win_rate, nobody.parse_rate) == (0, None, None)


def test_mean_lengths_of_both_sides() -> None:
    assert mean_lengths(winners=[10, 20], losers=[5]) == {"winners": 15.0, "losers": 5.0}
    assert mean_lengths(winners=[])["winners"] is None
    assert mean_lengths(winners=[1, 2, 2])["winners"] == pytest.approx(5 / 3)


def test_the_first_seat_share_and_its_expected_range_by_hand() -> None:
    """Of 8 duels with 10 choices each, 6 are all first and 2 are even: 70 of 80, and the leads are 10 in 6 duels."""
    duels = [judged({KING_FIRST: 1, CHALLENGER_FIRST: 1}) for _ in range(6)]
    duels += [judged({KING_FIRST: 1, CHALLENGER_FIRST: 2}) for _ in range(2)]
    (judge,) = judge_summary(duels, panel=["a"])
    assert judge.first_share == 70 / 80 and judge.first_expected is not None
    assert judge.first_expected.high - 0.5 == pytest.approx(1.959964 * (6 * 10**2) ** 0.5 / 80 / 2)


def test_a_single_order_says_nothing_about_seats() -> None:
    (judge,) = judge_summary([judged({KING_FIRST: 1})] * 9, panel=["a"])
    assert (judge.first_share, judge.win_rate) == (None, 0.0)


def judged(seats: dict[str, int], **about: Any) -> JudgedDuel:
    """One judge, "a", which gives the same value in all dimensions."""
    verdicts = tuple(OrderedVerdict("a", order, dict.fromkeys(DIMENSIONS, value)) for order, value in seats.items())
    return JudgedDuel(verdicts, score_duel(verdicts, panel=["a"], orders=tuple(seats)), **about)


CHALLENGER = {KING_FIRST: 2, CHALLENGER_FIRST: 1}
KING = {KING_FIRST: 1, CHALLENGER_FIRST: 2}


def test_leaks_length_and_families() -> None:
    duels = [
        judged(CHALLENGER, leak=True, lengths=(100, 200), families=("x", "mine")),
        judged(CHALLENGER, lengths=(100, 200), families=("mine", "x")),
        judged(KING, lengths=(100, 50), families=("mine", "x")),
        judged(KING, lengths=(100, 50), families=("mine", "mine")),
    ]
    (judge,) = judge_summary(duels, panel=["a"], families={"a": "mine"})
    assert judge.by_leak[0] == 1.0 and judge.by_leak[1] == pytest.approx(1 / 3)
    assert judge.length_slope == pytest.approx(50.0), "from half to twice the length: two doublings, 100 points"
    assert judge.own_family == pytest.approx(2 / 3)
