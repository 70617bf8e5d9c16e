"""A mapping of a person says where the messages are, and what columns and roles mean."""

from typing import Any

import pytest
from pydantic import ValidationError

from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.layouts.rows.read import read_row
from curation.imports.layouts.session import Outcome
from curation.imports.sources.rows import RowRefused

ROW: dict[str, Any] = {
    "episode": {
        "log": [
            {"role": "narrator", "content": "Fix it."},
            {"role": "coder", "content": "I look."},
            {"role": "shell", "content": "a.py"},
            {"role": "exit", "content": "diff"},
        ],
        "seed": 3,
    },
    "ok": True,
    "grade": 0.75,
    "who": "m-1",
    "system": "not a system prompt",
    "noise": "x",
}
MAPPING = RowMapping.model_validate(
    {
        "messages": "episode.log",
        "columns": {
            "ok": "outcome",
            "grade": "reward.tests",
            "who": "model",
            "system": "metadata",
            "noise": "ignored",
            "missing": "task",
        },
        "roles": {"narrator": "user", "coder": "agent", "shell": "tool", "exit": "ignored"},
    }
)


def test_a_mapped_row_is_a_session_with_its_outcome() -> None:
    session, account = read_row(ROW, MAPPING)
    assert [(step["source"], step["message"]) for step in session.steps] == [("user", "Fix it."), ("agent", "I look.")]
    assert session.steps[1]["observation"]["results"] == [{"content": "a.py"}]
    assert (session.verdict.outcome, session.verdict.rewards) == (Outcome.SOLVED, {"tests": 0.75})
    assert (session.agent["model_name"], session.metadata) == ("m-1", {"system": "not a system prompt"})
    assert {(entry["field"], entry["becomes"]) for entry in account.entries()} == {
        ("episode.log", "steps"),
        ("episode.log[]", "ignored"),
        ("episode", "ignored"),
        ("ok", "outcome"),
        ("grade", "reward.tests"),
        ("who", "model"),
        ("system", "metadata"),
        ("noise", "ignored"),
    }
    assert ROW["episode"]["log"], "the row itself is left as it is"


def test_a_row_without_the_messages_is_refused() -> None:
    with pytest.raises(RowRefused, match=r"no messages at episode\.log, where the mapping has them"):
        read_row({"messages": []}, MAPPING)


def test_a_reward_that_is_no_number_is_refused() -> None:
    with pytest.raises(RowRefused, match="grade is mapped to a reward, but it is not a number"):
        read_row(ROW | {"grade": "A"}, MAPPING)


@pytest.mark.parametrize(
    "wrong", [{"columns": {"a": "colour"}}, {"columns": {"a": "reward."}}, {"roles": {"a": "robot"}}, {"role": {}}]
)
def test_an_unknown_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RowMapping.model_validate(wrong)
