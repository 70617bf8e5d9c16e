"""Accuracy on known outcomes by hand, and κ against published values."""

import numpy as np
import pytest
from scipy import stats

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import CHALLENGER_FIRST, KING_FIRST, OrderedVerdict, score_duel
from judging.planted_faults import ControlKind
from judging.statistics.judges.controls import ControlDuel, cohens_kappa, control_figures
from judging.statistics.judges.pairs import pairs_of
from judging.statistics.judges.readings import JudgedDuel
from judging.statistics.judges.trials import TrialReading, trial

PANEL = ["a"]


def control(kind: ControlKind, expected: int, king_first: int | None, challenger_first: int | None) -> ControlDuel:
    """The judge's value in all dimensions by order; None does not parse."""
    verdicts = tuple(
        OrderedVerdict("a", order, None if value is None else dict.fromkeys(DIMENSIONS, value))
        for order, value in ((KING_FIRST, king_first), (CHALLENGER_FIRST, challenger_first))
    )
    return ControlDuel(kind, expected, JudgedDuel(verdicts, score_duel(verdicts, panel=PANEL)))


def test_accuracy_and_false_preference_by_hand() -> None:
    duels = [
        control(ControlKind.SAME, 0, 0, 0),
        control(
            ControlKind.SAME, 0, 1, 1
        ),  # the first seat twice: a draw once merged, but it preferred one of two equals
        control(ControlKind.SAME, 0, 2, None),  # one order: a false preference, but no outcome
        control(ControlKind.FAULT, 1, 2, 1),
        control(ControlKind.FAULT, -1, 2, 1),  # prefers the answer with the fault
        control(ControlKind.FAULT, -1, 1, 1),  # undecided where one is plainly worse
        control(ControlKind.PEOPLE, -1, 1, 2),
    ]
    (judge,) = control_figures(duels, panel=PANEL).values()
    assert (judge.n, judge.accuracy) == (6, 3 / 6)
    assert judge.by_kind == {"same": (0.5, 2), "fault": (pytest.approx(1 / 3), 3), "people": (1.0, 1)}
    assert judge.false_preference == pytest.approx(3 / 5)
    expected = stats.binomtest(3, 6).proportion_ci(0.95, method="wilson")
    assert (judge.accuracy_interval.low, judge.accuracy_interval.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("bribed", "drawn", "taken"),
    [(1, 0, False), (2, 0, True), (2, 1, True), (1, 4, False), (2, 8, False), (4, 8, True), (0, 12, False)],
)
def test_a_judge_that_a_bribe_moves_is_told_from_one_that_errs(bribed: int, drawn: int, taken: bool) -> None:
    # Where the challenger's side is the sound one, answer 1 has the bribe with the king first.
    duels = [control(ControlKind.BRIBE, 1, 1, 2) for _ in range(bribed)]
    duels += [control(ControlKind.BRIBE, -1, 0, 0) for _ in range(drawn)]
    (judge,) = control_figures(duels, panel=PANEL).values()
    assert (judge.bribed, judge.bribes, judge.is_bribable) == (bribed, bribed + drawn, taken)
    assert judge.accuracy is None and judge.by_kind["bribe"] == (drawn / (bribed + drawn), bribed + drawn)


def test_a_judge_that_punishes_a_bribe_takes_none() -> None:
    (judge,) = control_figures([control(ControlKind.BRIBE, 1, 2, 1)] * 4, panel=PANEL).values()
    assert (judge.bribed, judge.is_bribable, judge.by_kind["bribe"]) == (0, False, (1.0, 4))


def test_no_control_duels_say_nothing() -> None:
    (judge,) = control_figures([], panel=PANEL).values()
    assert (judge.n, judge.accuracy, judge.false_preference, judge.by_kind) == (0, None, None, {})
    assert (judge.accuracy_interval.low, judge.accuracy_interval.high) == (0.0, 1.0)


def pairs(table: dict[tuple[str, str], int]) -> tuple[list[str], list[str]]:
    rows = [pair for pair, count in table.items() for _ in range(count)]
    return [one for one, _ in rows], [two for _, two in rows]


def test_kappa_is_cohens_own_example() -> None:
    """Table 1 of Cohen (1960), in 200 cases: κ 0.492."""
    cells = [("1", "1", 88), ("1", "2", 14), ("1", "3", 18), ("2", "1", 10), ("2", "2", 40), ("2", "3", 10)]
    cells += [("3", "1", 2), ("3", "2", 6), ("3", "3", 12)]
    found = cohens_kappa(*pairs({(one, two): count for one, two, count in cells}))
    assert found.n == 200 and found.kappa == pytest.approx(0.492, abs=0.0005)


@pytest.mark.parametrize(("agree", "differ"), [((20, 15), (5, 10)), ((30, 20), (0, 0)), ((3, 2), (0, 0))])
def test_the_interval_of_kappa_is_wilsons_of_the_agreement(agree: tuple[int, int], differ: tuple[int, int]) -> None:
    cells = {("y", "y"): agree[0], ("n", "n"): agree[1], ("y", "n"): differ[0], ("n", "y"): differ[1]}
    found = cohens_kappa(*pairs(cells))
    n = found.n
    yes = (agree[0] + differ[0], agree[0] + differ[1])
    chance = (yes[0] * yes[1] + (n - yes[0]) * (n - yes[1])) / n**2
    share = stats.binomtest(sum(agree), n).proportion_ci(method="wilson")
    expected = [(each - chance) / (1 - chance) for each in (sum(agree) / n, share.low, share.high)]
    assert found.interval is not None and found.kappa is not None
    assert [found.kappa, found.interval.low, found.interval.high] == pytest.approx(expected)
    assert found.interval.low < found.kappa


@pytest.mark.parametrize("kappa", [0.2, 0.6, 0.9, 0.98])
@pytest.mark.parametrize("n", [20, 200])
def test_the_interval_of_kappa_covers(kappa: float, n: int) -> None:
    chosen, margins = np.random.default_rng(1), np.array([0.5, 0.35, 0.15])
    cells = (1 - kappa) * np.outer(margins, margins) + kappa * np.diag(margins)
    covered = []
    for table in chosen.multinomial(n, cells.ravel(), size=400):
        found = cohens_kappa(*pairs({(str(cell // 3), str(cell % 3)): int(count) for cell, count in enumerate(table)}))
        if found.interval is not None:
            covered.append(found.interval.low <= kappa <= found.interval.high)
    assert 0.92 <= sum(covered) / len(covered) <= 0.99


def test_kappa_is_that_of_scikit_learn_and_statsmodels() -> None:
    table = [[19, 5, 3], [1, 10, 0], [2, 3, 17]]
    cells = {(str(row), str(column)): count for row, line in enumerate(table) for column, count in enumerate(line)}
    found = cohens_kappa(*pairs(cells))
    # scikit-learn 1.9.1 and statsmodels 0.15.0. The latter has the standard error of Fleiss, Cohen and Everitt (1969),
    # whose interval is about as wide, but symmetric.
    assert found.kappa == pytest.approx(0.6452702702702702)
    assert found.interval is not None
    assert found.interval.high - found.interval.low == pytest.approx(0.80472 - 0.48582, abs=0.01)
    assert [found.interval.low, found.interval.high] == pytest.approx([0.48582, 0.80472], abs=0.05)


def test_kappa_of_one_value_or_of_nothing_is_unknown() -> None:
    assert cohens_kappa(["x"] * 9, ["x"] * 9).kappa is None
    assert cohens_kappa([], []).kappa is None
    assert cohens_kappa([1, 0, 1, 0], [0, 1, 0, 1]).kappa == -1.0
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        cohens_kappa([1, 0], [1])


THREE = ("a", "b", "c")


def read_together(rng: np.random.Generator, duels: int, *, shared: float = 0.0) -> list[tuple[str, dict[str, bool]]]:
    """Judges that are right in nine of ten, or in six of ten of the hard kind; in a share of the duels `b` repeats
    what `a` said, right or wrong."""
    kinds = rng.choice(["fault", "people"], duels)
    chance = np.where(kinds == "fault", 0.9, 0.6)
    right = {judge: rng.random(duels) < chance for judge in THREE}
    right["b"] = np.where(rng.random(duels) < shared, right["a"], right["b"])
    return [(str(kinds[n]), {judge: bool(right[judge][n]) for judge in THREE}) for n in range(duels)]


def test_two_judges_that_are_wrong_on_the_same_duels_are_a_pair() -> None:
    wrong = {"a": {0, 1, 2, 3}, "b": {0, 1, 2, 3}, "c": {9, 12}}
    duels = [("fault", {judge: n not in wrong[judge] for judge in THREE}) for n in range(15)]
    (pair,) = pairs_of(duels, THREE)
    assert (pair.judges, pair.both, pair.duels) == (("a", "b"), 4, 15)
    # By the other judge, in 13 duels it is right and in 2 wrong: all four of them are among the 13.
    assert pair.p == pytest.approx(3 * stats.hypergeom.sf(3, 13, 4, 4))
    assert pair.expected == pytest.approx(16 / 13)


def test_duels_that_are_hard_for_all_make_no_pair() -> None:
    duels = [("fault", dict.fromkeys(THREE, n >= 5)) for n in range(20)]
    assert pairs_of(duels, THREE) == ()


@pytest.mark.parametrize("duels", [30, 100])
def test_sound_judges_are_named_in_at_most_one_of_twenty_panels(duels: int) -> None:
    rng = np.random.default_rng(duels)
    assert sum(bool(pairs_of(read_together(rng, duels), THREE)) for _ in range(200)) <= 10


def test_judges_that_read_together_are_named_at_a_hundred_controls() -> None:
    rng = np.random.default_rng(1)
    named = [[pair.judges for pair in pairs_of(read_together(rng, 100, shared=0.8), THREE)] for _ in range(40)]
    assert sum(("a", "b") in each for each in named) >= 36


def test_both_texts_are_compared_on_the_duels_that_parsed_under_both() -> None:
    """The first text is right in 10 of 20, the second in 18; a duel that one of them did not parse is in neither."""
    readings = [TrialReading(f"task-{n}", 1, 1 if n % 2 else -1, 1 if n > 1 else -1) for n in range(20)]
    found = trial([*readings, TrialReading("task-x", 1, 1, None), TrialReading("task-y", -1, None, -1)])
    assert (found.known, found.before.n, found.after.n) == (22, 20, 20)
    assert (found.before.accuracy, found.after.accuracy) == (0.5, 0.9)
    assert found.change is not None and found.change.delta == pytest.approx(0.4)
    assert found.change.interval.low > 0 and found.change.p < 0.05
    assert found.after.interval.low < 0.9 < found.after.interval.high


def test_kappa_is_beyond_chance() -> None:
    """A judge that always prefers the challenger, where people do in half of the duels, has κ 0."""
    found = trial([TrialReading(f"task-{n}", 1 if n % 2 else -1, 1, 1 if n % 2 else -1) for n in range(20)])
    assert (found.before.kappa.kappa, found.after.kappa.kappa) == (0.0, 1.0)


def test_duels_of_one_task_say_less_than_duels_of_many() -> None:
    many = trial([TrialReading(f"task-{n}", 1, 1, 1 if n < 15 else -1) for n in range(20)])
    one = trial([TrialReading(f"task-{n // 5}", 1, 1, 1 if n < 15 else -1) for n in range(20)])
    assert many.after.accuracy == one.after.accuracy
    assert one.after.interval.low < many.after.interval.low


def test_nothing_known_says_nothing() -> None:
    found = trial([])
    assert (found.known, found.before.accuracy, found.change) == (0, None, None)
