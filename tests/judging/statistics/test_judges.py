"""What the judges' table says about fair, biased and broken judges."""

import pytest

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import CHALLENGER_FIRST, KING_FIRST, ORDERS, OrderedVerdict, score_duel
from judging.statistics.judges import AnswerLengths, JudgedDuel, JudgeSummary, judge_summary, mean_lengths

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


def test_fair_biased_and_broken_judges() -> None:
    fair, first, broken = judge_summary([make_judged(2), make_judged(2), make_judged(0), make_judged(1)], panel=PANEL)
    # Two wins and a tie that counts half, of four. It agrees with the biased judge's ties only in the tie.
    assert fair == JudgeSummary("fair", 4, win_rate=0.625, flip_rate=0.0, parse_rate=1.0, agreement=0.25)
    assert first == JudgeSummary("first", 4, win_rate=0.5, flip_rate=1.0, parse_rate=1.0, agreement=0.25)
    assert broken == JudgeSummary("broken", 0, win_rate=None, flip_rate=0.0, parse_rate=0.0, agreement=None)


def test_a_judge_that_parsed_one_order_has_half_its_replies_but_no_say() -> None:
    verdicts = (
        OrderedVerdict("fair", KING_FIRST, dict.fromkeys(DIMENSIONS, 2)),
        OrderedVerdict("fair", CHALLENGER_FIRST, None),
    )
    (fair,) = judge_summary([JudgedDuel(verdicts, score_duel(verdicts, panel=["fair"]))], panel=["fair"])
    assert (fair.n, fair.parse_rate, fair.win_rate) == (0, 0.5, None)


def test_a_retry_is_no_further_question() -> None:
    verdicts = (
        OrderedVerdict("fair", KING_FIRST, None),
        OrderedVerdict("fair", KING_FIRST, dict.fromkeys(DIMENSIONS, 2)),
        OrderedVerdict("fair", CHALLENGER_FIRST, dict.fromkeys(DIMENSIONS, 1)),
    )
    (fair,) = judge_summary([JudgedDuel(verdicts, score_duel(verdicts, panel=["fair"]))], panel=["fair"])
    assert (fair.parse_rate, fair.win_rate, fair.agreement) == (1.0, 1.0, None)


def test_no_duels() -> None:
    (nobody,) = judge_summary([], panel=["a"])
    assert (nobody.n, nobody.win_rate, nobody.parse_rate) == (0, None, None)


def test_mean_lengths_of_both_sides() -> None:
    assert mean_lengths(winners=[10, 20], losers=[5]) == AnswerLengths(15.0, 5.0)
    assert mean_lengths(winners=[], losers=[]).winners is None
    assert mean_lengths(winners=[1, 2, 2], losers=[1]).winners == pytest.approx(5 / 3)
