"""Verdicts that rest on an assumption, on judges that nothing checks, or on replies that are missing."""

import random
from dataclasses import replace

import numpy as np

from judging.statistics.acceptance import acceptance
from judging.statistics.bounds import choose_clusters
from judging.statistics.gate import GateDuel, GateSettings
from judging.statistics.judges.controls import ControlFigures
from judging.statistics.splits import splits
from tests.judging.statistics.test_acceptance import duels_of, lifted, make_score, noise
from tests.judging.statistics.worlds import on_controls


def by_people(right: int) -> ControlFigures:
    """A judge's figures with so many of eight duels decided as people did."""
    return replace(on_controls("a")["a"], by_kind={"people": (right / 8, 8)})


def test_a_strict_gate_decides_nothing_that_rests_on_an_assumption() -> None:
    votes = {name: lifted(noise(n), 0.3) for n, name in enumerate("abc")}
    duels = duels_of(votes, "r{}")
    strict = GateSettings(strict=True)
    for right, decision in ((8, "accepted"), (6, "undecided")):
        controls = {judge: replace(by_people(right), judge=judge) for judge in "abc"}
        result = acceptance(duels, panel=list("abc"), controls=controls, settings=strict)
        assert result.decision == decision
        assert ("It assumes that its judges share no preference" in result.basis) == (right == 6)
    assert result.reasons == (
        f"undecided, as the gate is strict: {result.basis.partition('again without each of them. ')[2].rstrip('.')}",
    )
    one = [replace(duel, repo="acme/anvil") for duel in duels]
    controls = {judge: replace(by_people(8), judge=judge) for judge in "abc"}
    assert (
        "All duels are of acme/anvil"
        in acceptance(one, panel=list("abc"), controls=controls, settings=strict).reasons[-1]
    )
    for settings, decision in ((GateSettings(), "accepted"), (strict, "undecided")):
        settings = replace(settings, one_order=True)
        result = acceptance(duels, panel=list("abc"), controls=controls, settings=settings)
        assert result.decision == decision and "assumes that its judges prefer no place" in result.basis


def test_a_judge_that_its_controls_do_not_show_to_be_sound_checks_a_majority_all_the_same() -> None:
    """Without the fourth judge nothing would tell that the other three share a preference."""
    votes = {name: lifted(noise(n, 120), 0.4) for n, name in enumerate("abc")} | {"d": noise(3, 120)}
    duels = duels_of(votes)
    for told, decision in ((11, "undecided"), (7, "accepted")):
        controls = on_controls(*"abc") | on_controls("d", told=told)
        result = acceptance(duels, panel=list("abcd"), controls=controls)
        assert (result.informative, result.decision) == (("a", "b", "c"), decision), result.reasons


def test_judges_of_whom_each_takes_a_few_bribes_are_bribed_together() -> None:
    votes = {name: lifted(noise(n), 0.3) for n, name in enumerate("abc")}
    for bribed, reasons in ((2, []), (3, ["prefer the same answer with a bribe in 9 of 36 control readings"])):
        controls = {judge: replace(figures, bribed=bribed, bribes=12) for judge, figures in on_controls(*"abc").items()}
        result = acceptance(duels_of(votes, "r{}"), panel=list("abc"), controls=controls)
        assert result.informative == ("a", "b", "c")
        assert [reason.partition("together ")[2] for reason in result.reasons] == reasons


def test_replies_that_are_missing_where_the_king_wins_are_no_win() -> None:
    """Of duels that all parsed the challenger wins most; a judge did not parse many that the others give the king."""
    rng = random.Random(6)
    for leans in (True, False):
        duels = []
        for n in range(200):
            truth = rng.choice([0.3, 0.7])
            row = {judge: truth + rng.choice([-0.2, 0.1, 0.2]) for judge in "abc"}
            if rng.random() < (0.6 if truth == 0.3 else 0.0) if leans else rng.random() < 0.3:
                del row[rng.choice("abc")]
            score = make_score(row)
            duels.append(GateDuel(replace(score, parsed=len(row) == 3), "", f"i{n}"))
        result = acceptance(duels, panel=list("abc"), controls=on_controls(*"abc"))
        assert (
            any("missing more often where the other judges prefer the opponent" in each for each in result.reasons)
            == leans
        )
        assert (result.decision == "undecided") == leans


def test_a_large_panel_is_checked_without_all_of_its_millions_of_minorities() -> None:
    """Nine of sixteen judges share a preference, and seven see no difference."""
    sound, sharing = "abcdefg", "hijklmnop"
    shared = lifted(noise(99, 120), 0.4)
    votes = {name: noise(n, 120) for n, name in enumerate(sound)}
    votes |= {
        name: [
            own if n % 3 else alike
            for n, (alike, own) in enumerate(zip(shared, lifted(noise(place, 120), 0.4), strict=True))
        ]
        for place, name in enumerate(sharing, 20)
    }
    duels = duels_of(votes)
    settings = GateSettings(resamples=500)
    result = acceptance(duels, panel=list(votes), controls=on_controls(*votes), settings=settings)
    assert not result.accepted and "the judges split" in result.reasons[-1], result.reasons
    assert not result.undecided_without and "without each two" in result.basis
    found = splits(np.array(list(votes.values())).T, choose_clusters([""] * 120, [duel.instance_id for duel in duels]))
    assert tuple(range(7)) in [minority for _, minority in found]
