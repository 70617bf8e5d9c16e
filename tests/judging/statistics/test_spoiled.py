"""Panels with majorities that share a preference, in worlds without a difference and with one.

`-s` prints the table of docs/measurements.md.
"""

import pytest

from judging.statistics.judges.findings import findings
from judging.statistics.judges.readings import panel_readings
from tests.judging.statistics.spoiled import judged
from tests.judging.statistics.spoiled_worlds import BETTER, LEVEL, UNSEEN

ROUNDS = 200


def share_accepted(world: str, rounds: int) -> float:
    worlds = LEVEL | BETTER
    found = [worlds[world].verdict([seed, 26, len(world)]) for seed in range(rounds)]
    undecided = sum(result.decision == "undecided" for result in found) / rounds
    accepted = sum(result.accepted for result in found) / rounds
    print(f"\n| {world} | {rounds} | {accepted:.3f} | {undecided:.3f} |")
    return accepted


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("world", LEVEL)
def test_a_majority_that_shares_a_preference_makes_no_false_acceptance(world: str) -> None:
    """0.07 is asked for; of 200 runs at such a share 0.11 are accepted once in a hundred times."""
    accepted = share_accepted(world, ROUNDS)
    assert accepted <= 0.11 or world in UNSEEN


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("world", BETTER)
def test_sound_panels_accept_a_better_challenger(world: str) -> None:
    assert share_accepted(world, ROUNDS) > (0.6 if "40" in world and "of 0.65, " not in world else 0.01)


def test_three_of_four_that_collude_are_a_split_in_which_no_sound_judge_is_named() -> None:
    world, rounds = LEVEL["three of four together in 0.6"], 12
    found = [world.verdict([seed, 26]) for seed in range(rounds)]
    assert sum(result.accepted for result in found) <= 2
    split = "undecided: the judges split 3 : 1, and nothing tells which side is right: the smaller would not accept it"
    assert sum(split in result.reasons[-1] and not result.undecided_without for result in found) >= rounds - 3
    named = 0
    for seed in range(rounds):
        said = findings(panel_readings(judged(world.made([seed, 27])), panel=world.panel))
        named += any(finding.flaw for finding in said if finding.judge == world.panel[-1])
    assert named <= 1
