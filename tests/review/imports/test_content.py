"""The training content of rows in every layout, and the reasons of rows that are no sample."""

from typing import Any

import pytest

from curation.imports.sources.rows import RowRefused
from curation.review.imports.content import read_imported_row
from judging.messages import message_text
from tests.review.importing import ASKED, FIVE, FOUR

OF_OURS = dict.fromkeys(("id", "source", "bucket", "run"), "") | {"reviewers": [], "score": 840}
LAYOUTS: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "chat": ({"messages": [*ASKED, FOUR]}, "Four.", None),
    "sharegpt": (
        {"conversations": [{"from": "human", "value": "Two?"}, {"from": "gpt", "value": "Four."}], "system": "Brief."},
        "Four.",
        None,
    ),
    "prompt and completion": ({"prompt": ASKED, "completion": [FOUR]}, "Four.", None),
    "texts": ({"prompt": "Two and two?", "completion": "Four."}, "Four.", None),
    "preference": ({"prompt": ASKED, "chosen": [FOUR], "rejected": [FIVE]}, "Four.", "Five."),
    "preference of texts": ({"prompt": "Two?", "chosen": "Four.", "rejected": "Five."}, "Four.", "Five."),
    "implicit prompt": ({"chosen": [*ASKED, FOUR], "rejected": [*ASKED, FIVE]}, "Four.", "Five."),
    "one message a side": ({"prompt": ASKED, "chosen": FOUR, "rejected": FIVE}, "Four.", "Five."),
    "openai preference": (
        {"input": {"messages": ASKED, "tools": []}, "preferred_output": [FOUR], "non_preferred_output": [FIVE]},
        "Four.",
        "Five.",
    ),
    "alpaca": ({"instruction": "Add.", "input": "2 2", "output": "Four.", "history": [["Hi", "Hello"]]}, "Four.", None),
    "alpaca preference": ({"instruction": "Add.", "chosen": "Four.", "rejected": "Five."}, "Four.", "Five."),
    "llama-factory preference": (
        {
            "conversations": [{"from": "human", "value": "Two?"}],
            "chosen": {"from": "gpt", "value": "Four."},
            "rejected": {"from": "gpt", "value": "Five."},
        },
        "Four.",
        "Five.",
    ),
    "answer of seed rows": (
        {"instance_id": "a__b-1", "king": "Five.", "challenger": "Four.", "assistant": "The own.", "messages": ASKED},
        "Four.",
        "Five.",
    ),
}


@pytest.mark.parametrize(("row", "answer", "other"), LAYOUTS.values(), ids=LAYOUTS)
def test_common_layouts_have_an_answer_and_its_rival(row: dict[str, Any], answer: str, other: str | None) -> None:
    content = read_imported_row(0, row, "marked").content
    said = [None if message is None else message_text(message) for message in (content.answer, content.other)]
    assert said == [answer, other] and content.history


@pytest.mark.parametrize("answers", [{"rejected": ["Five.", "Six."]}, {"rejected": "Five.", "preferred_output": "4."}])
def test_a_second_answer_of_a_side_is_in_the_account(answers: dict[str, Any]) -> None:
    found = read_imported_row(0, {"prompt": "Two?", "chosen": "Four.", **answers}, "marked")
    assert found.content.other and message_text(found.content.other) == "Five."
    said = {entry["field"]: entry["becomes"] for entry in found.account.entries()}
    assert said["(other answers)"] == "ignored: a sample has the first answer of each side"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "answers or steps": (
        {"prompt": "Two?", "completions": ["Four.", "Five."], "rewards": [1, 0]},
        "completions has several texts without `labels`: they may be answers, or the steps of one",
    ),
    "unknown": ({"note": "x"}, "no layout of training data has the columns note"),
    "text": (
        {"text": "x"},
        "a task or a text without messages is no sample: map its columns to `prompt` and `completion`",
    ),
    "no answer": ({"messages": ASKED}, "the row has no answer of an assistant"),
    "rejected alone": ({"prompt": "a", "rejected": "b"}, "a rejected answer without a chosen one is no sample"),
    "nothing before": ({"messages": [FOUR]}, "nothing comes before the answer"),
    "same sides": ({"prompt": ASKED, "chosen": [FOUR], "rejected": [FOUR]}, "chosen and rejected are the same"),
    "whole sessions": (
        {"prompt": ASKED, "chosen": [FOUR, ASKED[0], FIVE], "rejected": [FIVE]},
        "chosen has 3 messages: a sample has one answer on a side",
    ),
    "label": ({"prompt": "a", "completion": "b", "label": 1}, "label is not true or false"),
    "untrained end": ({"messages": [*ASKED, {**FOUR, "train": False}]}, "no answer of the row is trained on"),
    "trained user": (
        {"messages": [{**ASKED[0], "train": True}, {**FOUR, "train": True}]},
        "messages.0 is trained on, but it is not an assistant message",
    ),
    "score": ({**OF_OURS, "messages": [*ASKED, FOUR]}, "score is not a number from 0 to 100"),
}


@pytest.mark.parametrize(("row", "reason"), BAD.values(), ids=BAD)
def test_a_row_that_is_no_sample_is_refused_with_its_reason(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowRefused) as refused:
        read_imported_row(0, row, "marked")
    assert str(refused.value) == reason
