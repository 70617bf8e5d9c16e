"""Each flawed judge is named by a sentence of its own, and sound judges are not."""

import re

import numpy as np
import pytest
from scipy import stats

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import CHALLENGER_FIRST, KING_FIRST, OrderedVerdict, score_duel
from judging.statistics.judges.contrasts import majority, signed, upper
from judging.statistics.judges.findings import Flaw, JudgeFinding, findings
from judging.statistics.judges.readings import JudgedDuel, panel_readings
from tests.judging.statistics.worlds import FLAWED, PANEL, World

SENTENCES = {
    Flaw.POSITION: r"prefers the first answer: \d+ %, expected 50 ± \d+",
    Flaw.LENGTH: r"prefers the longer answer: \d+ %, the others \d+ %",
    Flaw.OWN_FAMILY: r"prefers its own family: \d+ % of the duels, the others \d+ %",
    Flaw.RANDOM: r"decides at random: .* \d+ %",
    Flaw.DRAWS: r"calls nearly everything a draw: 100 %, the others \d+ %",
    Flaw.CONSTANT: r"gives the same verdict in 100 % of its replies, the others \d+ %",
    Flaw.CONTRARIAN: r"sides against the other judges: .* \d+ %",
    Flaw.COPY: r"repeats sound-a: its replies are the same in 9\d % of the dimensions; with the others \d+ %",
    Flaw.UNPARSED: r"does not give a verdict that can be read: [34]\d % of \d+ replies",
    Flaw.DRIFT: r"changes over the run: prefers the challenger in \d+ % of the first half and \d+ % of the second.*",
    Flaw.MARKDOWN: r"prefers answers with Markdown: \d+ %, the others \d+ %",
    Flaw.COURTESY: r"prefers answers with courtesies: \d+ %, the others \d+ %",
    Flaw.REPOSITORY: r"prefers the challenger in r1 in \d+ % of the duels, the others \d+ %; elsewhere \d+ %",
    Flaw.HOURS: r"prefers the challenger from 06:00 to 12:00 UTC in \d+ % of the duels, the others .*",
    Flaw.LEAK: r"prefers answers with a leak: \d+ % of them, the others \d+ %; without one \d+ %",
}


def found_in(world: World) -> tuple[JudgeFinding, ...]:
    return findings(panel_readings(world.judged, panel=PANEL, families=world.families))


@pytest.mark.parametrize("flaw", list(FLAWED))
def test_a_flawed_judge_is_named_by_its_own_sentence(flaw: Flaw) -> None:
    found = found_in(World(np.random.default_rng(11), 200, flaw))
    (own,) = [each for each in found if each.judge == "judge-c" and each.flaw == flaw]
    assert re.fullmatch(SENTENCES[flaw], own.sentence), own.sentence
    # Of a judge and its copy nobody knows which is which.
    sound = {each.judge: each for each in found if each.flaw and each.judge != "judge-c"}
    assert set(sound) == ({"sound-a"} if flaw == Flaw.COPY else set())


def test_sound_judges_are_said_to_be_unremarkable() -> None:
    found = found_in(World(np.random.default_rng(3), 200, None))
    assert [each.judge for each in found] == list(PANEL) and {each.flaw for each in found} == {None}
    assert all(
        re.fullmatch(r"nothing unusual in 200 duels: chooses .* expected 50 ± \d", each.sentence) for each in found
    )


def test_a_judge_that_keeps_every_choice_has_no_seat_to_prefer() -> None:
    verdicts = tuple(
        OrderedVerdict("a", order, dict.fromkeys(DIMENSIONS, value))
        for order, value in ((KING_FIRST, 2), (CHALLENGER_FIRST, 1))
    )
    judged = [JudgedDuel(verdicts, score_duel(verdicts, panel=["a"]))] * 30
    (found,) = findings(panel_readings(judged, panel=["a"], families={}))
    assert found.sentence == "nothing unusual in 30 duels: it keeps every choice when the answers are exchanged"
    once = [JudgedDuel(verdicts[:1], score_duel(verdicts[:1], panel=["a"], orders=(verdicts[0].order,)))] * 30
    (found,) = findings(panel_readings(once, panel=["a"], families={}))
    assert found.sentence.endswith("each was read in one order: a preference for a seat does not show")


def test_a_few_duels_say_nothing() -> None:
    found = found_in(World(np.random.default_rng(3), 19, Flaw.DRAWS))
    assert [each.sentence for each in found] == ["read only 19 duels: 20 are needed to say anything"] * 3


def test_a_judge_without_any_reading_is_named() -> None:
    world = World(np.random.default_rng(3), 60, None)
    world.says["judge-c"][:] = -1
    named = [each for each in found_in(world) if each.flaw]
    assert [(each.judge, each.flaw) for each in named] == [("judge-c", Flaw.UNPARSED)]
    assert named[0].sentence == "does not give a verdict that can be read: 100 % of 120 replies"


def test_a_judge_that_prefers_the_challenger_without_being_of_its_family() -> None:
    world = World(np.random.default_rng(3), 200, Flaw.OWN_FAMILY)
    world.families = {}
    (named,) = [each for each in found_in(world) if each.flaw]
    assert (named.judge, named.flaw) == ("judge-c", Flaw.SIDE)
    assert re.fullmatch(r"prefers the challenger in \d+ % of the duels, the others in \d+ %", named.sentence)


def test_two_judges_cannot_tell_which_of_them_is_odd() -> None:
    world = World(np.random.default_rng(3), 200, Flaw.OWN_FAMILY)
    pair = ("sound-a", "judge-c")
    found = findings(panel_readings(world.judged, panel=pair, families=world.families))
    assert [each.flaw for each in found] == [None, None]


@pytest.mark.parametrize("rows", [5, 30, 400])
def test_the_deviate_is_students_t(rows: int) -> None:
    values = np.random.default_rng(rows).normal(0.3, 1, rows)
    # Against the sum of squares around 0 and not around the mean: the same test, in another form.
    expected = stats.ttest_1samp(values, 0, alternative="greater").pvalue
    assert upper(signed(values, np.arange(rows))) == pytest.approx(expected, rel=1e-6)


def test_values_without_spread_prove_what_their_signs_do() -> None:
    assert upper(signed(np.ones(6), np.arange(6))) == pytest.approx(0.5**6)
    assert upper(signed(np.ones(60), np.repeat(np.arange(6), 10))) == pytest.approx(0.5**6)
    assert signed(np.zeros(6), np.arange(6)) == 0.0


def test_the_majority_of_the_others_must_show_it() -> None:
    assert majority([0.001, 0.4]) == 0.4
    assert majority([0.001, 0.002, 0.9]) == pytest.approx(2 * 0.002)
    assert majority([0.001, 0.001, 0.003, 0.9]) == pytest.approx(2 * 0.003)
