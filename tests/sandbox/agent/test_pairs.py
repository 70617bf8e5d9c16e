import pytest

from sandbox.agent.pairs import WHOLE_TRAJECTORY, Divergence, LeftOut, Side, pair_sides
from tests.factories import make_turns

KEPT = make_turns("todo --help", "todo", "echo x > y", outputs=("usage\n", "write x\n"))


def kept() -> Side:
    return Side(KEPT, "solved", "1")


def rejected(*commands: str, outcome: str = "checker_failed", sha: str = "1", **turns: object) -> Side:
    given = {"outputs": ("usage\n", "write x\n"), **turns}
    return Side(make_turns(*commands, **given), outcome, sha)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "at"),
    [
        (rejected("ls"), 1),
        (rejected("todo --help", "ls"), 3),
        (rejected("todo --help", "todo"), 5),  # it left where the kept one worked
        (rejected("todo --help", "todo", "echo z > y"), 5),
        (rejected(terminal="panic too hard", outcome="wrong_terminal"), 1),
        (rejected("todo --help", "todo", "ls", terminal="", outcome="no_terminal"), 5),
    ],
)
def test_the_first_differing_action_is_chosen_against_rejected(other: Side, at: int) -> None:
    assert pair_sides(kept(), other) == Divergence(at)
    assert KEPT[at]["kind"] == other.turns[at]["kind"] == "action"
    assert KEPT[:at] == other.turns[:at]


@pytest.mark.parametrize("strategy", ["first_divergence", WHOLE_TRAJECTORY])
@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (rejected("ls", outcome="timeout"), LeftOut.INFRA),
        (rejected("ls", outcome="infra_error"), LeftOut.INFRA),
        (rejected("ls", sha="2"), LeftOut.OTHER_BUNDLE),
        (Side(KEPT, "checker_failed", "1"), LeftOut.IDENTICAL),
        (rejected("ls", banner="Another day\n"), LeftOut.NO_ACTION),
    ],
)
def test_sides_that_make_no_pair(other: Side, reason: LeftOut, strategy: str) -> None:
    assert pair_sides(kept(), other, strategy=strategy) == reason


def test_a_difference_that_the_machine_made_is_no_pair() -> None:
    other = rejected("todo --help", "todo", "ls", outputs=("usage\n", "write x, please\n"))
    assert pair_sides(kept(), other) == LeftOut.NO_ACTION
    assert pair_sides(kept(), other, strategy=WHOLE_TRAJECTORY) == Divergence(1)


def test_a_side_that_had_ended_has_no_action_to_reject() -> None:
    other = rejected("todo --help", "todo", terminal="", outcome="no_terminal")
    assert pair_sides(kept(), other) == LeftOut.ENDED
    nothing = rejected(terminal="", outcome="format_error")
    assert pair_sides(kept(), nothing, strategy=WHOLE_TRAJECTORY) == LeftOut.ENDED


def test_without_a_prompt_there_is_no_pair() -> None:
    def bare(command: str, outcome: str) -> Side:
        return Side([{"kind": "orientation", "text": " \n"}, {"kind": "action", "text": command}], outcome)

    for strategy in ("first_divergence", WHOLE_TRAJECTORY):
        assert pair_sides(bare("a", "solved"), bare("b", "checker_failed"), strategy=strategy) == LeftOut.EMPTY_PROMPT
