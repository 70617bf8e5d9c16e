"""A judge knows the answers as 1 and 2; its reason is read with their names."""

import pytest

from judging.panel.reasons import name_answers, named_text


@pytest.mark.parametrize(
    ("reason", "named"),
    [
        (
            "Answer 1 reads the failing test, answer 2 repeats.",
            "The king reads the failing test, the challenger repeats.",
        ),
        ("I prefer Answer 2.", "I prefer the challenger."),
        (
            "The first answer is better; the second answer's command fails.",
            "The king is better; the challenger's command fails.",
        ),
        ("Answers 1 and 2 both read it.", "The king and the challenger both read it."),
        ("answer_2 has no THOUGHT", "the challenger has no THOUGHT"),
        ("Response A is better than Response B.", "The king is better than the challenger."),
        ("**Answer 1** wins", "**The king** wins"),
        ("Answer (2) is cheaper", "The challenger is cheaper"),
        ("Neither the first nor the second answer edits.", "Neither the king nor the challenger edits."),
        ("The second reads the first lines.", "The challenger reads the first lines."),
        ("The first is better than the second.", "The king is better than the challenger."),
        ("Answer #1 vs. #2", "The king vs. the challenger"),
        ("So the 1st candidate: fine", "So the king: fine"),
    ],
)
def test_words_for_an_answer_become_its_name(reason: str, named: str) -> None:
    assert named_text(reason, "king", "challenger") == named
    exchanged = named.replace("king", "?").replace("challenger", "king").replace("?", "challenger")
    assert named_text(reason, "challenger", "king") == exchanged


@pytest.mark.parametrize(
    "reason",
    [
        "It has two blocks; the first is empty.",
        "The first step is wrong, and the first lines are missing.",
        'The command prints "answer 1 is best".',
        "Both are right, but the former is slower than the latter.",
        "Both answer one of the questions and Answer A-B tests.",
        "Answer 1.5 is what it prints; answer 12 is not.",
        "",
    ],
)
def test_other_words_stay(reason: str) -> None:
    assert named_text(reason, "king", "challenger") == reason


def test_the_words_of_the_judge_can_be_put_back() -> None:
    reason = "Answer 1 edits first; \x1b[31m answer 2 reads, and the second answer is safe."
    pieces = name_answers(reason, "king", "challenger")
    assert "".join(piece.said or piece.text for piece in pieces) == reason
    assert [piece.said for piece in pieces if piece.said] == ["Answer 1", "answer 2", "the second answer"]
