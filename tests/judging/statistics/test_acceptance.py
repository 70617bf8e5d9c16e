"""The acceptance gate against hand-computed cases and an independent, slow reference."""

import itertools
import math
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from scipy import stats

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import DuelScore, JudgeScore
from judging.statistics.acceptance import GateResult, acceptance
from judging.statistics.gate import GateDuel, GateSettings
from tests.judging.statistics.worlds import on_controls

NO_SCORE = DuelScore(None, {}, (), parsed=False, flipped=False, spread=0.0)


def make_score(votes: dict[str, float], flips: int = 0, apart: float = 0) -> DuelScore:
    """A duel with these judges' scores (0 to 1); each judge flips on `flips` dimensions. `apart`: replies of the same
    score differ so much on the dimensions."""
    judges = tuple(
        JudgeScore(judge, vote, dict.fromkeys(DIMENSIONS, vote + apart * place), DIMENSIONS[:flips])
        for place, (judge, vote) in enumerate(votes.items())
    )
    mean = 100 * statistics.fmean(votes.values())
    return DuelScore(mean, {}, judges, parsed=True, flipped=bool(flips), spread=0.0)


def gate(
    scores: Sequence[float], clusters: Sequence[str], *, done: int, settings: GateSettings | None = None
) -> GateResult:
    """The gate for two judges that agree, where `clusters` are instances; duels beyond the scores are unparsed."""
    votes = [make_score({"a": s / 100, "b": s / 100}, apart=0.01) for s in scores]
    duels = [GateDuel(score, "", c) for score, c in zip(votes, clusters, strict=True)]
    duels += [GateDuel(NO_SCORE, "", "")] * (done - len(scores))
    return acceptance(duels, panel=["a", "b"], controls=on_controls("a", "b"), settings=settings)


def gate_of_panel(
    votes: Mapping[str, Sequence[float]], *, flips: int = 0, leaks: int = 0, injections: int = 0
) -> GateResult:
    """The gate for judges by their scores (0 to 1), one instance each duel. The first `leaks` and the first
    `injections` duels have the flag."""
    rows = [dict(zip(votes, row, strict=True)) for row in zip(*votes.values(), strict=True)]
    duels = [
        GateDuel(make_score(row, flips), "", f"i{n}", leak=n < leaks, injection=n < injections)
        for n, row in enumerate(rows)
    ]
    return acceptance(duels, panel=list(votes), controls=on_controls(*votes))


def duels_of(votes: Mapping[str, Sequence[float]], repo: str = "") -> list[GateDuel]:
    """A duel for each row of the judges' scores, one instance each; `repo` may have the row's number as `{}`."""
    rows = [dict(zip(votes, row, strict=True)) for row in zip(*votes.values(), strict=True)]
    return [GateDuel(make_score(row), repo.format(n), f"i{n}") for n, row in enumerate(rows)]


def widened(quantile: float, clusters: int) -> float:
    tail: float = stats.norm.cdf((clusters / (clusters - 1)) ** 0.5 * stats.t.ppf(quantile, clusters - 1))
    return tail


def exact_bound(groups: list[list[float]], quantile: float) -> float:
    """All resamples of few clusters, each as likely as the other; the widened quantile, by hand."""
    means = []
    for drawn in itertools.product(groups, repeat=len(groups)):
        turns = [2 * score - 100 for group in drawn for score in group]
        means.append(sum(turns) / len(turns))
    means.sort()
    lowest = means[int(widened(quantile, len(groups)) * len(means))]
    student = (
        statistics.fmean(2 * score - 100 for group in groups for score in group)
        + float(stats.t.ppf(quantile, len(groups) - 1))
        * statistics.pstdev(means)
        * (len(groups) / (len(groups) - 1)) ** 0.5
    )
    centre = statistics.fmean(2 * score - 100 for group in groups for score in group)
    one_side = all(sum(group) > 50 * len(group) for group in groups)
    return float(
        min(lowest, student, jackknife(groups, quantile), *([agreeing(centre, len(groups))] if one_side else []))
    )


def jackknife(groups: list[list[float]], quantile: float) -> float:
    """Student's t with the error of the means without each group, by hand."""
    margins = [[2 * score - 100 for score in group] for group in groups]
    mean = statistics.fmean(margin for group in margins for margin in group)
    without = [
        statistics.fmean(margin for other, group in enumerate(margins) if other != left for margin in group)
        for left in range(len(margins))
    ]
    squares = sum((each - mean) ** 2 for each in without)
    error = math.sqrt(squares * (len(groups) - 1) / len(groups))
    return mean + float(stats.t.ppf(quantile, len(groups) - 1)) * error


def agreeing(margin: float, clusters: int) -> float:
    share: float = 0.05 ** (1 / clusters)
    return margin * (2 * share - 1)


def slow_bound(groups: list[list[float]], quantile: float, resamples: int, seed: int) -> float:
    rng = random.Random(seed)
    means = []
    for _ in range(resamples):
        turns = [score for drawn in rng.choices(groups, k=len(groups)) for score in drawn]
        means.append(2 * sum(turns) / len(turns) - 100)
    return sorted(means)[int(widened(quantile, len(groups)) * resamples)]


def grouped(scores: list[float], clusters: list[str]) -> list[list[float]]:
    return [[s for s, c in zip(scores, clusters, strict=True) if c == name] for name in sorted(set(clusters))]


def test_margin_and_acceptance_by_hand() -> None:
    result = gate([65.0] * 50, [f"i{n % 12}" for n in range(50)], done=50)
    assert result.margin == 30.0 and result.lcb == pytest.approx(agreeing(30, 12))
    assert result.lcb_unclustered == pytest.approx(agreeing(30, 50))
    assert (result.parsed, result.done, result.decision, result.reasons) == (50, 50, "accepted", ())
    assert (result.clusters, result.clustered_by) == (12, "instance_id")


@pytest.mark.parametrize("clusters", [1, 2, 3, 4, 5, 9, 10, 20])
@pytest.mark.parametrize("per_cluster", [1, 30])
def test_clusters_that_agree_have_the_bound_of_those_that_were_not_drawn(clusters: int, per_cluster: int) -> None:
    """Not the mean: (1 - q) ** n = 0.05, and the share q of the clusters may be lost as clearly."""
    names = [f"i{n % clusters}" for n in range(clusters * per_cluster)]
    result = gate([100.0] * len(names), names, done=len(names))
    assert result.lcb is not None and result.lcb == pytest.approx(agreeing(100, clusters))
    assert (result.lcb > 0) is (clusters >= 5)
    assert result.decision == ("accepted" if clusters >= 10 else "undecided")
    lowered = gate([100.0] * len(names), names, done=len(names), settings=GateSettings(min_clusters=1))
    assert lowered.decision == ("accepted" if clusters >= 5 else "not accepted")


def test_a_hair_of_disagreement_makes_no_certainty() -> None:
    one, nearly = (gate([100.0, last, 100.0], list("abc"), done=3) for last in (100.0, 99.99))
    assert one.lcb is not None and one.lcb < 0
    assert nearly.lcb == pytest.approx(one.lcb, abs=0.1)


@pytest.mark.parametrize("settings", [GateSettings(), GateSettings(cluster=False)])
def test_thirty_turns_of_one_pull_request_are_undecided(settings: GateSettings) -> None:
    result = gate([100.0] * 30, ["only"] * 30, done=30, settings=settings)
    assert (result.decision, result.accepted) == ("undecided", False)
    assert result.reasons[0] == "it rests on 1 pull request, 10 are needed"


def test_clusters_are_counted_without_the_flagged_duels_too() -> None:
    duels = [GateDuel(make_score({"a": 1, "b": 1}), "", f"i{n}", leak=n < 9) for n in range(12)]
    result = acceptance(duels, panel=["a", "b"], controls=on_controls("a", "b"))
    assert (result.clusters, result.decision) == (12, "undecided")
    assert result.reasons[0] == "it rests on 3 pull requests without duels with a leak flag, 10 are needed"


def test_an_even_run_is_not_accepted_and_says_why() -> None:
    result = gate([50.0] * 20, [""] * 20, done=40, settings=GateSettings(min_parsed=0.6))
    assert result.margin == 0.0 and result.lcb == pytest.approx(-100 * (1 - 0.05 ** (1 / 20)))
    assert len(result.reasons) == 3 and result.decision == "not accepted"
    assert "20 of 40" in result.reasons[0]


def test_half_parsed_is_just_enough() -> None:
    assert gate([80.0] * 10, [""] * 10, done=20).accepted
    assert not gate([80.0] * 10, [""] * 10, done=21).accepted


def test_a_margin_on_the_edge_is_accepted() -> None:
    assert gate([51.0] * 10, [""] * 10, done=10).accepted
    assert not gate([50.9] * 10, [""] * 10, done=10).accepted


def test_nothing_parsed_has_no_figures() -> None:
    result = gate([], [], done=7)
    assert (result.margin, result.lcb, result.lcb_unclustered, result.accepted) == (None, None, None, False)
    assert (result.decision, result.reasons[0]) == ("undecided", "no duel was parsed")
    assert "a parsed in 0 of 7 duels; b parsed in 0 of 7 duels" in result.reasons[1]
    assert gate([], [], done=0).reasons[0] == "no duel was done"


def test_with_few_clusters_the_bound_is_at_most_that_of_turns() -> None:
    scores = [80.0, 30.0, 60.0, 55.0, 45.0, 48.0] * 5
    result = gate(scores, ["only"] * 30, done=30)
    assert result.margin is not None and result.margin > 2
    assert result.lcb is not None and result.lcb_unclustered is not None
    assert result.lcb < result.lcb_unclustered and not result.accepted


def test_clusters_widen_the_bound_when_turns_of_one_request_agree() -> None:
    # One request with 30 won turns, nine with one lost turn each: by turns a clear win, by requests a single lucky one.
    scores = [100.0] * 30 + [30.0] * 9
    clusters = ["big"] * 30 + [f"small{n}" for n in range(9)]
    result = gate(scores, clusters, done=39)
    assert result.margin == pytest.approx(2 * (3000 + 270) / 39 - 100)
    assert result.lcb_unclustered is not None
    assert result.lcb is not None
    assert result.lcb_unclustered > 40
    # With probability 0.9 ** 10 = 0.35 the big one is not drawn at all, and the mean is exactly -40 points. Without it
    # the mean is 75 points lower, so the error of the means without one is larger still.
    assert result.lcb == -100
    assert not result.accepted


@pytest.mark.parametrize("scores", [(90.0, 70.0, 40.0, 55.0, 62.0, 80.0, 20.0), (60.0, 62.0, 80.0, 60.0, 61.0, 62, 55)])
def test_against_all_resamples_of_few_clusters(scores: Sequence[float]) -> None:
    clusters = ["a", "a", "b", "c", "c", "c", "d"]
    result = gate(scores, clusters, done=7, settings=GateSettings(resamples=200_000))
    assert result.lcb == pytest.approx(exact_bound(grouped(list(scores), clusters), 0.05), abs=0.4)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_against_a_slow_reference(seed: int) -> None:
    rng = random.Random(seed)
    scores = [rng.choice([20.0, 50.0, 65.0, 80.0, 100.0]) for _ in range(120)]
    clusters = [f"i{rng.randrange(25)}" for _ in scores]
    result = gate(scores, clusters, done=120, settings=GateSettings(seed=seed))
    groups = grouped(scores, clusters)
    assert result.lcb == pytest.approx(min(slow_bound(groups, 0.05, 4000, seed), jackknife(groups, 0.05)), abs=1.2)
    plain = slow_bound([[s] for s in scores], 0.05, 4000, seed)
    assert result.lcb_unclustered == pytest.approx(plain, abs=1.2)


def test_the_seed_decides_and_the_order_of_rows_does_not() -> None:
    rng = random.Random(9)
    rows = [(rng.uniform(0, 100), f"i{rng.randrange(12)}") for _ in range(80)]
    shuffled = rows[:]
    rng.shuffle(shuffled)
    one, two = (gate([s for s, _ in r], [c for _, c in r], done=80) for r in (rows, shuffled))
    assert (one.lcb, one.lcb_unclustered) == pytest.approx((two.lcb, two.lcb_unclustered), abs=1e-6)
    other = gate([s for s, _ in rows], [c for _, c in rows], done=80, settings=GateSettings(seed=1))
    assert other.lcb_unclustered != one.lcb_unclustered


def test_an_empty_instance_id_is_a_cluster_of_its_own() -> None:
    scores = [float(n) for n in range(100)]
    result = gate(scores, [""] * 100, done=100)
    assert result.lcb == pytest.approx(result.lcb_unclustered, abs=0.2)
    assert (result.clusters, result.clustered_by) == (100, "turn")


@pytest.mark.parametrize(
    ("repos", "instances", "found"),
    [
        (12, 40, (12, "repo")),
        (9, 40, (40, "instance_id")),
        (10, 40, (10, "repo")),
        (3, 7, (7, "instance_id")),
        (60, 12, (12, "instance_id")),
        (0, 40, (40, "instance_id")),
    ],
)
def test_the_coarser_grouping_that_still_gives_ten_clusters(repos: int, instances: int, found: tuple[int, str]) -> None:
    duels = [
        GateDuel(make_score({"a": 0.4 + 0.001 * n}), f"r{n % repos}" if repos else "", f"i{n % instances}")
        for n in range(120)
    ]
    result = acceptance(duels, panel=["a"], controls=on_controls("a"))
    assert (result.clusters, result.clustered_by) == found


def test_without_clusters_turns_count_as_independent() -> None:
    duels = [GateDuel(make_score({"a": 0.9 if n % 3 else 0.2}), f"r{n % 12}", f"i{n % 24}") for n in range(60)]
    result = acceptance(duels, panel=["a"], controls=on_controls("a"), settings=GateSettings(cluster=False))
    assert (result.lcb, result.clusters) == (result.lcb_unclustered, 60)


def noise(seed: int, rows: int = 60) -> list[float]:
    rng = random.Random(seed)
    return [rng.choice([0.0, 0.5, 1.0]) for _ in range(rows)]


def lifted(votes: Sequence[float], by: float) -> list[float]:
    return [min(1.0, max(0.0, vote + by)) for vote in votes]


def test_no_single_judge_decides() -> None:
    result = gate_of_panel({"a": noise(1), "b": noise(2), "own": [1.0] * 60})
    assert result.margin is not None and result.margin > 20 and result.lcb is not None and result.lcb > 0
    assert not result.accepted and result.undecided_without == ("own",)
    (without,) = [left.gate for left in result.left_out if left.judges == ("own",)]
    assert without.margin == pytest.approx(100 * statistics.fmean([*noise(1), *noise(2)]) * 2 - 100)
    assert result.reasons[0].startswith("undecided: without own it would not be accepted (the margin of")
    assert "3 informative judges" in result.basis


def test_three_against_one_is_a_split_that_names_nobody() -> None:
    """Nothing tells three sound judges and one that is wrong from one sound judge and three that collude."""
    good = [0.4 + 0.4 * (n % 2) for n in range(60)]
    odd = [vote + 0.01 * (n % 3) for n, vote in enumerate(good[2:] + good[:2])]
    result = gate_of_panel({"a": good, "b": good[1:] + good[:1], "c": odd, "against": [0.0] * 60})
    rng = random.Random(5)
    pushed = [rng.random() < 0.4 for _ in range(120)]
    votes = {
        name: [1.0 if push else vote for push, vote in zip(pushed, noise(n, 120), strict=True)]
        for n, name in enumerate("abc")
    }
    colluding = gate_of_panel(votes | {"d": noise(3, 120)})
    for found, said in ((result, "the larger would accept it"), (colluding, "the smaller would not accept it (the")):
        assert (found.decision, found.undecided_without) == ("undecided", ())
        assert found.reasons[-1].startswith(
            f"undecided: the judges split 3 : 1, and nothing tells which side is right: {said}"
        )


def test_two_against_one_is_a_split_that_names_nobody() -> None:
    """Nothing tells two sound judges and one that is wrong from one sound judge and two that collude."""
    good = [0.4 + 0.4 * (n % 2) for n in range(60)]
    against = gate_of_panel({"a": good, "b": good[1:] + good[:1], "c": [0.0] * 60})
    colluding = gate_of_panel({"a": lifted(noise(1), 0.4), "b": lifted(noise(2), 0.4), "c": noise(3)})
    for result in (against, colluding):
        assert (result.decision, result.undecided_without) == ("undecided", ())
        assert result.reasons[-1].startswith("undecided: the judges split 2 : 1, and nothing tells which side is right")
    assert colluding.margin is not None and colluding.margin > 20


def test_judges_that_agree_on_draws_alone_are_checked_against_each_other() -> None:
    """In 92 % of the duels all see two answers of the same worth. In the others two prefer the challenger, and the
    third does so in every other one."""
    draws = [0.5] * 220
    votes = {"a": [0.0, 1.0] * 10 + draws, "b": [1.0] * 20 + draws, "c": [1.0] * 19 + [0.0, *draws]}
    result = gate_of_panel(votes)
    assert result.decision == "undecided"
    assert "without b and c it would not be accepted" in result.reasons[-1]


def test_of_four_judges_two_that_collude_decide_nothing() -> None:
    votes = {"a": lifted(noise(1), 0.4), "b": lifted(noise(2), 0.4), "c": noise(3), "d": noise(4)}
    result = gate_of_panel(votes)
    assert result.decision == "undecided" and result.undecided_without == ()
    assert "the judges split 3 : 1" in result.reasons[-1]


def test_two_against_two_names_no_judge() -> None:
    """Without one of two judges the other three have it accepted."""

    def near(mean: float, seed: int) -> list[float]:
        return [mean + random.Random(60 * seed + n).uniform(-0.05, 0.05) for n in range(60)]

    votes = {"a": near(0.6, 1), "b": near(0.6, 2), "c": near(0.4, 3), "d": near(0.41, 4)}
    result = gate_of_panel(votes)
    assert (result.decision, result.undecided_without) == ("undecided", ())
    assert result.reasons[-1].startswith("undecided: the judges split 3 : 1, and nothing tells which side is right")


def test_judges_of_whom_nothing_is_known_decide_nothing() -> None:
    votes = {name: lifted(noise(n), 0.3) for n, name in enumerate("abc")}
    duels = duels_of(votes)
    for controls, informative, why in (
        ({}, (), "a read no control duel; b read no control duel"),
        (
            on_controls(*"abc", told=1, known=10),
            (),
            "is right in 1 of 10 control duels with a known winner (95 % interval",
        ),
        (on_controls(*"abc", told=10, known=20), (), "no better than chance"),
        (on_controls(*"abc", told=3, known=3), (), "is right in 3 of 3 control duels"),
        (on_controls(*"abc", false=8), (), "prefers one of two equal answers in 100 % of its readings"),
        (on_controls(*"abc", same=0), (), "parsed in no control duel of the same answer twice"),
        (on_controls(*"abc", same=3), (), "prefers one of two equal answers in 0 %"),
        (on_controls(*"ab", told=7) | on_controls("c"), ("c",), "it rests on 1 informative judge, 2 are needed"),
    ):
        result = acceptance(duels, panel=list("abc"), controls=controls)
        assert (result.decision, result.informative) == ("undecided", informative)
        assert why in result.reasons[-1], result.reasons
    enough = acceptance(duels, panel=list("abc"), controls=on_controls("a", told=7) | on_controls("b", "c"))
    assert enough.accepted and enough.informative == ("b", "c")
    assert enough.basis.startswith(
        "The verdict rests on 2 informative judges of 3: a is right in 7 of 15 control duels"
    )


def test_a_verdict_that_every_judge_supports_is_accepted() -> None:
    result = gate_of_panel({name: lifted(noise(n), 0.25) for n, name in enumerate("abc")})
    assert result.accepted and result.undecided_without == () and len(result.left_out) == 3
    assert "without each of them" in result.basis


def test_of_two_judges_one_that_always_prefers_the_challenger_decides_nothing() -> None:
    result = gate_of_panel({"a": noise(1), "own": [1.0] * 60})
    assert result.margin is not None and result.margin > 20 and result.lcb is not None and result.lcb > 0
    assert (result.decision, result.undecided_without) == ("undecided", ())
    assert result.reasons[-1].startswith("undecided: the judges split 1 : 1, and nothing tells which one is right: one")
    assert result.compared == "not known"


def test_two_judges_that_both_accept_decide_and_the_basis_says_so() -> None:
    result = gate_of_panel({name: lifted(noise(n), 0.3) for n, name in enumerate("ab")})
    assert result.accepted and len(result.left_out) == 2
    assert result.basis == (
        "The verdict rests on 2 informative judges. It was computed again without each of them. "
        "It assumes that its judges share no preference except for better answers: no reply shows it."
    )


def test_a_verdict_on_one_repository_says_that_it_is_about_that_one() -> None:
    duels = [GateDuel(make_score({"a": 0.7, "b": 0.7}, apart=0.01), "acme/anvil", f"i{n}") for n in range(30)]
    result = acceptance(duels, panel=["a", "b"], controls=on_controls("a", "b"))
    assert result.accepted
    assert result.basis.endswith(" All duels are of acme/anvil: it says nothing about other repositories.")
    others = [*duels, GateDuel(make_score({"a": 0.7, "b": 0.7}, apart=0.01), "acme/bolt", "i30")]
    assert "acme/anvil" not in acceptance(others, panel=["a", "b"], controls=on_controls("a", "b")).basis


def test_few_repositories_that_differ_are_not_outvoted_by_many_pull_requests() -> None:
    """Three of four repositories are won and one is lost: forty pull requests look like a clear win."""
    won = [0.8, 0.8, 0.8, 0.2]
    duels = [
        GateDuel(make_score(dict.fromkeys("ab", won[n % 4] + 0.01 * (n % 5))), f"r{n % 4}", f"i{n}") for n in range(40)
    ]
    result = acceptance(duels, panel=["a", "b"], controls=on_controls("a", "b"))
    assert (
        result.margin is not None
        and result.margin > 20
        and (result.clusters, result.clustered_by) == (40, "instance_id")
    )
    assert result.lcb is not None and result.lcb < 0 and not result.accepted
    alike = [
        replace(duel, score=make_score(dict.fromkeys("ab", 0.7 + 0.01 * (n % 5)), apart=0.01))
        for n, duel in enumerate(duels)
    ]
    assert acceptance(alike, panel=["a", "b"], controls=on_controls("a", "b")).accepted


def test_an_uninformative_judge_does_not_decide() -> None:
    """It parses in 40 % of the duels, and then prefers the challenger."""
    rows = [
        {"a": x, "b": y} | ({"rare": 1.0} if n % 5 < 2 else {})
        for n, (x, y) in enumerate(zip(noise(1, 300), noise(2, 300), strict=True))
    ]
    duels = [GateDuel(make_score(row), "", f"i{n}") for n, row in enumerate(rows)]
    panel = ["a", "b", "rare"]
    result = acceptance(duels, panel=panel, controls=on_controls(*panel), settings=GateSettings(min_judges=2))
    assert result.margin is not None and result.margin >= 2 and result.lcb is not None and result.lcb > 0
    assert result.informative == ("a", "b") and result.undecided_without == ("rare",) and not result.accepted
    assert "rare parsed in 120 of 300 duels" in result.basis


def test_a_judge_that_flips_everywhere_is_not_informative() -> None:
    votes = lifted(noise(1), 0.3)
    score = [make_score({"a": vote, "b": vote}) for vote in votes]
    flipped = [make_score({"first": 0.5}, flips=5).judges for _ in votes]
    duels = [
        GateDuel(DuelScore(s.score, {}, (*s.judges, *f), parsed=True, flipped=True, spread=0), "", f"i{n}")
        for n, (s, f) in enumerate(zip(score, flipped, strict=True))
    ]
    panel = ["a", "b", "first"]
    result = acceptance(duels, panel=panel, controls=on_controls(*panel))
    assert result.informative == ("a", "b") and "2 informative judges of 3: first flips in 100 %" in result.basis


def test_judges_that_give_the_same_replies_are_left_out_together() -> None:
    """Leaving out one of two copies would leave the other's vote."""
    result = gate_of_panel({"a": noise(1), "own": [1.0] * 60, "copy": [1.0] * 60})
    assert not result.accepted and result.undecided_without == ("own", "copy")
    assert "own and copy give the same replies, or nearly, and were left out together" in result.basis


def test_copies_of_one_judge_are_one_judge() -> None:
    same = gate_of_panel({name: lifted(noise(1), 0.3) for name in "abc"})
    assert (same.decision, same.compared, same.left_out) == ("undecided", "not known", ())
    assert same.reasons == (
        "undecided: a, b and c give the same replies, or nearly, in 60 duels, as copies of one judge do;"
        " a verdict needs 2 judges",
    )
    few = gate_of_panel({name: [0.9] * 12 + [0.5] * 20 for name in "abc"})
    assert few.accepted
    assert "the same replies in 12 duels, too few to tell copies from agreement, so none was left out" in few.basis
    for told, decision in ((18, "accepted"), (19, "undecided")):
        two = gate_of_panel(dict.fromkeys("ab", lifted(noise(1, told), 0.3)))
        assert two.decision == decision and "2 informative judges, which all give the same replies" in two.basis


def test_copies_that_add_some_noise_of_their_own_count_as_one_judge() -> None:
    """Three of five would otherwise outvote the sound ones, however two are left out."""
    rng = random.Random(8)
    won = [rng.choice([0.6, 0.8, 1.0, 1.0]) for _ in range(60)]
    copies = {name: [rng.choice([0.0, 0.5]) if rng.random() < 0.1 else vote for vote in won] for name in "abc"}
    result = gate_of_panel({**copies, "d": noise(1), "e": noise(2)})
    assert not result.accepted and result.undecided_without == ("a", "b", "c")


def test_the_two_sides_are_not_called_different_where_judges_disagree_on_it() -> None:
    result = gate_of_panel({"a": noise(1), "b": [1.0] * 60, "c": [0.9, 1.0, 0.8] * 20})
    assert (result.decision, result.compared) == ("undecided", "not known")
    worse = gate_of_panel({"a": noise(1), "b": [0.0] * 60, "c": [0.1, 0.0, 0.2] * 20})
    assert (worse.decision, worse.compared) == ("not accepted", "not known")
    all_agree = gate_of_panel({name: lifted(noise(n), 0.4) for n, name in enumerate("abc", 1)})
    assert all_agree.compared == "clearly different"


def test_a_win_by_leaks_is_not_accepted() -> None:
    votes = {name: [1.0] * 20 + noise(n, 60) for n, name in enumerate("abc", 1)}
    result = gate_of_panel(votes, leaks=20)
    assert result.margin is not None and result.lcb is not None and result.lcb > 0
    assert result.margin_without_leaks is not None and result.margin > 20 > result.margin_without_leaks + 10
    assert (result.leaks, result.accepted) == (20, False)
    assert result.reasons[0].startswith("without duels with a leak flag the ")
    assert not gate_of_panel(votes, leaks=80).accepted
    assert gate_of_panel({name: lifted(votes[name], 0.3) for name in votes}, leaks=20).accepted


def test_a_win_by_bribes_is_not_accepted() -> None:
    votes = {name: [1.0] * 20 + noise(n, 60) for n, name in enumerate("abc", 1)}
    result = gate_of_panel(votes, injections=20)
    assert result.margin is not None and result.margin_without_injections is not None
    assert result.margin > 20 > result.margin_without_injections + 10
    assert (result.injections, result.leaks, result.accepted) == (20, 0, False)
    assert result.reasons[0].startswith("without duels with an injection flag the ")
    assert result.margin_without_leaks == result.margin
    all_flagged = gate_of_panel(votes, injections=80)
    assert not all_flagged.accepted and "every parsed duel has an injection flag" in all_flagged.reasons
    sold = gate_of_panel(
        {name: [1.0] * 20 + lifted(noise(n, 60), 0.3) for n, name in enumerate("abc", 1)}, injections=20
    )
    assert sold.lcb_without_injections is not None and sold.lcb_without_injections > 0
    assert sold.decision == "undecided" and "passages for its judges count" in sold.reasons[-1]
    unmoved = {name: lifted(noise(n, 80), 0.3) for n, name in enumerate("abc", 1)}
    assert gate_of_panel(unmoved, injections=20).accepted


def test_five_thousand_duels_take_at_most_three_seconds() -> None:
    rng = random.Random(4)
    scores = [rng.choice([20.0, 50.0, 65.0, 80.0]) for _ in range(5000)]
    clusters = [f"i{rng.randrange(900)}" for _ in scores]
    started = time.thread_time()
    gate(scores, clusters, done=5000)
    assert time.thread_time() - started < 3.0


def test_a_thousand_duels_of_three_judges_with_leaks_take_at_most_a_second() -> None:
    votes = {name: noise(n, 1000) for n, name in enumerate("abc")}
    started = time.thread_time()
    assert len(gate_of_panel(votes, leaks=100).left_out) == 3
    assert time.thread_time() - started < 1.0


def test_input_that_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the panel"):
        acceptance([GateDuel(make_score({"b": 0.5}), "", "")], panel=["a"], controls={})
    with pytest.raises(ValueError, match="between 0 and 1"):
        acceptance([GateDuel(make_score({"a": 1.01}), "", "")], panel=["a"], controls={})
    with pytest.raises(ValueError, match="out of range"):
        GateSettings(quantile=0)
