from typing import Any

import pytest

from sandbox.agent.pairs import WHOLE_TRAJECTORY, Divergence, NoPairReason, PairSide, pair_sides
from tests.factories import make_steps

KEPT = make_steps("todo --help", "todo", "echo x > y", outputs=("usage\n", "write x\n"))


def kept() -> PairSide:
    return PairSide(KEPT, "solved", "1")


def rejected(*commands: str, outcome: str = "checker_failed", sha: str = "1", **turns: object) -> PairSide:
    given = {"outputs": ("usage\n", "write x\n"), **turns}
    return PairSide(make_steps(*commands, **given), outcome, sha)


@pytest.mark.parametrize(
    ("other", "at"),
    [
        (rejected("ls"), 1),
        (rejected("todo --help", "ls"), 2),
        (rejected("todo --help", "todo"), 3),  # it left where the kept one worked
        (rejected("todo --help", "todo", "echo z > y"), 3),
        (rejected(terminal="panic too hard", outcome="wrong_terminal"), 1),
        (rejected("todo --help", "todo", "ls", terminal="", outcome="no_terminal"), 3),
    ],
)
def test_the_first_differing_action_is_chosen_against_rejected(other: PairSide, at: int) -> None:
    assert pair_sides(kept(), other) == Divergence(at)
    assert KEPT[at]["source"] == other.steps[at]["source"] == "agent"
    assert KEPT[:at] == other.steps[:at]


@pytest.mark.parametrize("strategy", ["first_divergence", WHOLE_TRAJECTORY])
@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (rejected("ls", outcome="timeout"), NoPairReason.INFRA),
        (rejected("ls", outcome="infra_error"), NoPairReason.INFRA),
        (rejected("ls", outcome="error"), NoPairReason.INFRA),
        (rejected("ls", outcome="unknown"), NoPairReason.INFRA),
        (rejected("ls", sha="2"), NoPairReason.OTHER_BUNDLE),
        (PairSide(KEPT, "checker_failed", "1"), NoPairReason.IDENTICAL),
        (rejected("ls", banner="Another day\n"), NoPairReason.NO_ACTION),
    ],
)
def test_sides_that_make_no_pair(other: PairSide, reason: NoPairReason, strategy: str) -> None:
    assert pair_sides(kept(), other, strategy=strategy) == reason


def test_a_difference_that_the_machine_made_is_no_pair() -> None:
    other = rejected("todo --help", "todo", "ls", outputs=("usage\n", "write x, please\n"))
    assert pair_sides(kept(), other) == NoPairReason.NO_ACTION
    assert pair_sides(kept(), other, strategy=WHOLE_TRAJECTORY) == Divergence(1)


def test_a_side_that_had_ended_has_no_action_to_reject() -> None:
    other = rejected("todo --help", "todo", terminal="", outcome="no_terminal")
    assert pair_sides(kept(), other) == NoPairReason.ENDED
    nothing = rejected(terminal="", outcome="format_error")
    assert pair_sides(kept(), nothing, strategy=WHOLE_TRAJECTORY) == NoPairReason.ENDED


def test_without_a_prompt_there_is_no_pair() -> None:
    def bare(command: str, outcome: str) -> PairSide:
        return PairSide([{"source": "user", "message": " \n"}, {"source": "agent", "message": command}], outcome)

    for strategy in ("first_divergence", WHOLE_TRAJECTORY):
        assert (
            pair_sides(bare("a", "solved"), bare("b", "checker_failed"), strategy=strategy) == NoPairReason.EMPTY_PROMPT
        )


def called(arguments: str, *, host: str, reasoning: str = "") -> list[dict[str, Any]]:
    call = {"tool_call_id": f"call {host}", "function_name": "bash", "arguments": {"command": arguments}}
    agent = {"source": "agent", "message": "", "reasoning_content": reasoning}
    shown = {"observation": {"results": [{"content": f"root@{host}:/app# 2026-11-26 11:00:01 done in 0.1 s"}]}}
    return [{"source": "user", "message": f"root@{host}"}, {**agent, "tool_calls": [call], **shown}]


def test_names_and_clocks_of_machines_and_ids_of_calls_are_no_difference() -> None:
    mine = [*called("ls", host="aef06a978b50"), *called("cat a", host="aef06a978b50")[1:]]
    other = [*called("ls", host="1a629a349228", reasoning="hm"), *called("cat b", host="1a629a349228")[1:]]
    assert pair_sides(PairSide(mine, "solved"), PairSide(other, "failed")) == Divergence(2)
    assert pair_sides(PairSide(mine, "solved"), PairSide(mine[:2] + other[2:], "failed")) == Divergence(2)
    assert pair_sides(PairSide(mine, "solved"), PairSide([*other[:2], mine[2]], "failed")) == NoPairReason.IDENTICAL
