"""Score of a duel: hand-computed tables, and properties that must hold for any panel."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import (
    CHALLENGER_FIRST,
    KING_FIRST,
    ORDERS,
    DuelScore,
    OrderedVerdict,
    Thresholds,
    bucket_for,
    score_duel,
)

# From the challenger's side, as a judge that sees through the order would say it.
WIN, DRAW, LOSS = "win", "draw", "loss"


def make_verdict(judge: str, order: str, outcomes: Sequence[str]) -> OrderedVerdict:
    shown_first = order == CHALLENGER_FIRST
    value = {WIN: 1 if shown_first else 2, DRAW: 0, LOSS: 2 if shown_first else 1}
    return OrderedVerdict(judge, order, {d: value[o] for d, o in zip(DIMENSIONS, outcomes, strict=True)})


def both_orders(judge: str, outcomes: Sequence[str], other: Sequence[str] | None = None) -> list[OrderedVerdict]:
    return [make_verdict(judge, KING_FIRST, outcomes), make_verdict(judge, CHALLENGER_FIRST, other or outcomes)]


def always_first(judge: str) -> list[OrderedVerdict]:
    return [OrderedVerdict(judge, order, dict.fromkeys(DIMENSIONS, 1)) for order in ORDERS]


@pytest.mark.parametrize(
    ("wins", "draws", "expected"),
    [(0, 0, 0.0), (5, 0, 100.0), (0, 5, 50.0), (3, 2, 80.0), (3, 0, 60.0), (2, 1, 50.0), (1, 1, 30.0), (4, 0, 80.0)],
)
def test_one_judge_gives_the_mean_of_its_five_dimensions(wins: int, draws: int, expected: float) -> None:
    outcomes = [WIN] * wins + [DRAW] * draws + [LOSS] * (5 - wins - draws)
    assert score_duel(both_orders("a", outcomes), panel=["a"]).score == expected


def test_three_judges_score_in_steps_of_one_thirtieth() -> None:
    seen = set()
    for halves in range(31):
        points = [min(10, max(0, halves - 10 * judge)) for judge in range(3)]
        verdicts = []
        for judge, p in zip("abc", points, strict=True):
            verdicts += both_orders(judge, [WIN] * (p // 2) + [DRAW] * (p % 2) + [LOSS] * (5 - p // 2 - p % 2))
        score = score_duel(verdicts, panel=["a", "b", "c"]).score
        assert score == pytest.approx(100 * halves / 30, abs=1e-9)
        seen.add(score)
    assert len(seen) == 31
    # Four fifths and two thirds of thirty half points sit exactly on paper's numbers.
    assert {80.0, 50.0, 100.0, 0.0} <= seen


def test_scores_on_an_edge_are_exact_and_fall_into_the_upper_bucket() -> None:
    verdicts = [v for judge in "abc" for v in both_orders(judge, [WIN] * 3 + [DRAW] * 2)]
    duel = score_duel(verdicts, panel=["a", "b", "c"])
    assert duel.score == 80.0
    assert bucket_for(duel.score, flags=(), thresholds=Thresholds()) == "final"


def test_fair_biased_and_broken_judge_give_sixty_five() -> None:
    verdicts = [*both_orders("fair", [WIN, WIN, WIN, DRAW, DRAW]), *always_first("biased")]
    verdicts += [OrderedVerdict("broken", order, None) for order in ORDERS]
    duel = score_duel(verdicts, panel=["fair", "biased", "broken"], min_judges=2)
    assert duel.score == 65.0
    assert duel.metrics == {"correctness": 75, "grounding": 75, "progress": 75, "protocol": 50, "efficiency": 50}
    assert [judge.judge for judge in duel.judges] == ["fair", "biased"]
    assert [judge.flips for judge in duel.judges] == [(), DIMENSIONS]
    assert (duel.parsed, duel.flipped, duel.spread) == (True, True, 30.0)


@pytest.mark.parametrize(
    ("first_reading", "second_reading", "points", "flips"),
    [
        (WIN, WIN, 1.0, ()),
        (LOSS, LOSS, 0.0, ()),
        (DRAW, DRAW, 0.5, ()),
        (WIN, LOSS, 0.5, ("progress",)),
        (LOSS, WIN, 0.5, ("progress",)),
        (WIN, DRAW, 0.5, ("progress",)),
        (DRAW, LOSS, 0.5, ("progress",)),
    ],
)
def test_orders_that_disagree_make_a_draw_and_are_kept_as_a_flip(
    first_reading: str, second_reading: str, points: float, flips: tuple[str, ...]
) -> None:
    one, two = [DRAW] * 5, [DRAW] * 5
    one[2], two[2] = first_reading, second_reading
    (judge,) = score_duel(both_orders("a", one, two), panel=["a"]).judges
    assert judge.dimensions["progress"] == points
    assert judge.flips == flips


def test_unparsed_is_missing_and_never_a_loss() -> None:
    lost, unparsed = make_verdict("b", KING_FIRST, [LOSS] * 5), OrderedVerdict("b", CHALLENGER_FIRST, None)
    verdicts = [*both_orders("a", [WIN] * 5), lost, unparsed]
    strict = score_duel(verdicts, panel=["a", "b"])
    assert (strict.score, strict.parsed, strict.metrics) == (None, False, {})
    assert [judge.judge for judge in strict.judges] == ["a"], "the judge that parsed is still shown"
    assert score_duel(verdicts, panel=["a", "b"], min_judges=1).score == 100.0


def test_a_reply_that_never_came_counts_as_unparsed() -> None:
    assert score_duel([make_verdict("a", KING_FIRST, [WIN] * 5)], panel=["a"]).score is None
    assert score_duel([make_verdict("a", KING_FIRST, [WIN] * 5)], panel=["a"], orders=[KING_FIRST]).score == 100.0


def test_rescoring_with_fewer_judges_ignores_the_others() -> None:
    verdicts = [*both_orders("a", [WIN] * 5), *both_orders("b", [LOSS] * 5)]
    assert score_duel(verdicts, panel=["a", "b"]).score == 50.0
    assert score_duel(verdicts, panel=["b"]).score == 0.0


def test_the_last_parsed_retry_counts() -> None:
    unparsed = OrderedVerdict("a", KING_FIRST, None)
    assert score_duel([unparsed, *both_orders("a", [WIN] * 5), unparsed], panel=["a"]).score == 100.0


def test_weights_move_the_score_but_not_the_metrics() -> None:
    verdicts = both_orders("a", [WIN, LOSS, LOSS, LOSS, LOSS])
    weights = dict.fromkeys(DIMENSIONS, 0.1) | {"correctness": 0.6}
    assert score_duel(verdicts, panel=["a"], weights=weights).score == 60.0
    assert score_duel(verdicts, panel=["a"], weights=weights | {"correctness": 0}).score == 0.0
    assert score_duel(verdicts, panel=["a"], weights=weights).metrics == score_duel(verdicts, panel=["a"]).metrics


@pytest.mark.parametrize(
    "weights", [dict.fromkeys(DIMENSIONS, 0.0), dict.fromkeys(DIMENSIONS, 1.0) | {"progress": -1.0}]
)
def test_weights_that_make_no_sense_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        score_duel(both_orders("a", [WIN] * 5), panel=["a"], weights=weights)


def test_questions_that_make_no_sense_are_refused() -> None:
    asked = [([], ORDERS, None), (["a", "a"], ORDERS, None), (["a"], ["sideways"], None), (["a"], ORDERS, 0)]
    for panel, orders, min_judges in asked:
        with pytest.raises(ValueError, match=r"panel|orders|min_judges"):
            score_duel([], panel=panel, orders=orders, min_judges=min_judges)
    with pytest.raises(ValueError, match="values 0, 1 or 2"):
        score_duel([OrderedVerdict("a", KING_FIRST, {"correctness": 3})], panel=["a"])


readings = st.lists(st.sampled_from([WIN, DRAW, LOSS]), min_size=5, max_size=5)
panels = st.lists(st.tuples(readings, readings), min_size=1, max_size=4)


def panel_score(panel: list[tuple[list[str], list[str]]]) -> DuelScore:
    verdicts = [v for n, (one, two) in enumerate(panel) for v in both_orders(f"j{n}", one, two)]
    return score_duel(verdicts, panel=[f"j{n}" for n in range(len(panel))])


@given(panels)
def test_exchanging_king_and_challenger_mirrors_every_figure(panel: list[tuple[list[str], list[str]]]) -> None:
    mirror = {WIN: LOSS, LOSS: WIN, DRAW: DRAW}
    here = panel_score(panel)
    there = panel_score([([mirror[o] for o in one], [mirror[o] for o in two]) for one, two in panel])
    assert here.score is not None
    assert there.score == pytest.approx(100 - here.score, abs=1e-9)
    assert there.metrics == pytest.approx({d: 100 - m for d, m in here.metrics.items()}, abs=1e-9)
    assert there.spread == pytest.approx(here.spread, abs=1e-9)


@given(panels, st.data())
def test_a_better_reading_never_lowers_the_score(panel: list[tuple[list[str], list[str]]], data: st.DataObject) -> None:
    judge = data.draw(st.integers(0, len(panel) - 1))
    dimension = data.draw(st.integers(0, 4))
    order = data.draw(st.integers(0, 1))
    before = panel_score(panel)
    better = {LOSS: DRAW, DRAW: WIN, WIN: WIN}
    changed = [(list(one), list(two)) for one, two in panel]
    changed[judge][order][dimension] = better[changed[judge][order][dimension]]
    after = panel_score(changed)
    assert before.score is not None
    assert after.score is not None
    # Two draws may become a draw and a win: a flip, still a draw. It never goes down.
    assert after.score >= before.score


def test_every_pair_of_readings_of_one_dimension() -> None:
    points = {WIN: 1.0, DRAW: 0.5, LOSS: 0.0}
    for one, two in product(points, repeat=2):
        (judge,) = panel_score([([one] * 5, [two] * 5)]).judges
        assert judge.score == (points[one] if one == two else 0.5)


@pytest.mark.parametrize(
    ("score", "flags", "bucket"),
    [
        (100.0, (), "final"),
        (80.0, (), "final"),
        (79.999, (), "refined"),
        (66.0, (), "refined"),
        (65.999, (), "defeat"),
        (0.0, (), "defeat"),
        (None, (), "unparsed"),
        (None, ("leak",), "unparsed"),
        (95.0, ("leak",), "refined"),
        (95.0, ("infra", "flip"), "refined"),
        (95.0, ("flip", "truncated"), "final"),
        (50.0, ("leak",), "defeat"),
        (95.0, ("injection",), "refined"),
    ],
)
def test_bucket_edges_and_flags(score: float | None, flags: tuple[str, ...], bucket: str) -> None:
    assert bucket_for(score, flags=flags, thresholds=Thresholds()) == bucket


def test_thresholds_in_the_wrong_order_are_refused() -> None:
    for final, refined in ((50, 60), (101, 60), (50, -1)):
        with pytest.raises(ValueError, match="refined <= final"):
            Thresholds(final=final, refined=refined)
    assert all(bucket_for(100.0, flags=(), thresholds=Thresholds(edge, edge)) == "final" for edge in (0, 100))


@given(st.floats(0, 100), st.floats(0, 100), st.sets(st.sampled_from(["leak", "infra", "flip", "injection"])))
def test_a_higher_score_never_falls_into_a_lower_bucket(one: float, two: float, flags: set[str]) -> None:
    rank = {"defeat": 0, "refined": 1, "final": 2}
    low, high = (bucket_for(s, flags=flags, thresholds=Thresholds()) for s in sorted((one, two)))
    assert rank[low] <= rank[high]
