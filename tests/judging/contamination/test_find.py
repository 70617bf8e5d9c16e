"""What of an evaluation stands in training data: exactly, nearly, or by task and answer."""

import json
from typing import Any

import pytest

from judging.contamination.find import contamination
from judging.contamination.levels import Level
from judging.contamination.normalise import normalised, task_of
from judging.contamination.rows import ComparedRow, TrainingRow
from tests.parts import shared_data


def row(
    prompt: str = "TASK: list users.\n\nStep: 0", answer: str = "aws iam list-users", task_id: str = ""
) -> ComparedRow:
    return ComparedRow(prompt, prompt, answer, task_id)


def trained(*rows: ComparedRow) -> list[TrainingRow]:
    return [TrainingRow.of(row, line) for line, row in enumerate(rows)]


def levels(one: ComparedRow, other: ComparedRow) -> tuple[Level, ...]:
    return next((match.levels for match in contamination([one], trained(other))), ())


def test_the_levels_of_a_match() -> None:
    assert levels(row(), row()) == (Level.EXACT, Level.PROMPT, Level.NEAR, Level.TASK_ANSWER)
    assert levels(row(), row(answer="aws iam ls")) == (Level.PROMPT, Level.NEAR)
    assert levels(row("TASK: list users.\n\nStep: 0"), row("TASK: list users.\n\nStep: 4")) == (
        Level.NEAR,
        Level.TASK_ANSWER,
    )
    assert levels(row("A\n\nnow", task_id="7"), row("B\n\nthen", task_id="7")) == (Level.TASK_ANSWER,)
    assert levels(row("A\n\nnow", task_id="7"), row("B\n\nthen", answer="other", task_id="7")) == ()


def test_a_label_or_an_option_as_the_answer_to_another_question_says_nothing() -> None:
    template, options = "Answer the question with one letter.\n\n", "\nA) Wind\nB) Frost\nC) All of the above"
    one, other = f"{template}What wears down a cliff?{options}", f"{template}What makes the sea salty?{options}"
    assert levels(row(one, "C"), row(other, "C")) == (Level.COMMON,)
    assert levels(row(one[40:], "C) All of the above"), row(other[40:], "C) All of the above")) == (Level.COMMON,)
    assert Level.TASK_ANSWER in levels(row("List the users.", "ls"), row("List the users.\n\nStep: 2", "ls"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2024-05-01T10:00:00Z", "at 2025-11-30 23:59:59.123+02:00"),
        ("request 3f2504e0-4f89-11d3-9a0c-0305e82c3301 failed", "request 8F14E45F-CEEA-467F-9A0C-0305E82C33AA failed"),
        ("instance i-0abc12de34f567890 runs", "instance i-99aa88bb77cc66dd5 runs"),
        ("commit 1a2b3c4d5e", "commit 9f8e7d6c5b"),
        ("took 0.35 s", "took 12 s"),
        ("a\n\n  b", "a b"),
        ("Go.\nLast reward: 0.1\nEnd", "Go.\nLast reward: none\nEnd"),
        ("Go.\n   Last command output: {'x': 1}\nEnd", "Go.\nLast command output: ''\nEnd"),
    ],
)
def test_what_changes_between_recordings_is_normalised_away(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("list users", "list groups"), ("Last error: a", "Last error: b"), ("bucket alpha", "bucket beta")],
)
def test_what_tells_tasks_apart_stays(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


def test_the_task_is_the_first_paragraph() -> None:
    assert task_of("TASK: create\n a table.\n\nStep: 1") == "TASK: create a table."


def test_a_match_names_its_first_training_row_of_each_level() -> None:
    training = [row("other"), row(answer="x"), row(), row()]
    found = list(contamination([row()], trained(*training)))
    assert [(match.train_row, match.levels) for match in found] == [
        (1, (Level.PROMPT, Level.NEAR)),
        (2, (Level.EXACT, Level.TASK_ANSWER)),
    ]


def test_the_published_split() -> None:
    """Every held-out row has its task and its answer in the training data, 147 nearly word for word, none exactly."""
    rows, training = (
        [published(json.loads(line)) for line in shared_data("aws_cli", f"{name}.jsonl").open()]
        for name in ("val", "train")
    )
    counted = {level: set[int]() for level in Level}
    for match in contamination(rows, trained(*training)):
        for level in match.levels:
            counted[level].add(match.row)
    assert {level: len(counted[level]) for level in list(Level)[:4]} == {
        Level.EXACT: 0,
        Level.PROMPT: 11,
        Level.NEAR: 147,
        Level.TASK_ANSWER: 150,
    }


def published(value: dict[str, Any]) -> ComparedRow:
    *before, last = value["messages"]
    opening = next(message["content"] for message in before if message["role"] == "user")
    return ComparedRow("\n\n".join(m["content"] for m in before), opening, last["content"], str(value["task_id"]))
