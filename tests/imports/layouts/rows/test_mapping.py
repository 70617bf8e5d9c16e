"""A mapping of a person says where the messages are, and what columns and roles mean."""

from typing import Any

import pytest
from pydantic import ValidationError

from curation.imports.layouts.recognise import Layout, read, recognise
from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.layouts.rows.override import overridden
from curation.imports.layouts.rows.read import read_row
from curation.imports.layouts.session import SessionOutcome
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
    assert (session.verdict.outcome, session.verdict.rewards) == (SessionOutcome.SOLVED, {"tests": 0.75})
    assert (session.agent["model_name"], session.metadata) == ("m-1", {"system": "not a system prompt"})
    assert {(entry["field"], entry["becomes"]) for entry in account.entries()} == {
        ("episode.log", "steps"),
        ("episode.log[]", "ignored"),
        ("episode", "ignored: a list or an object, unless it is mapped to metadata"),
        ("ok", "outcome"),
        ("grade", "reward.tests"),
        ("who", "model"),
        ("system", "metadata"),
        ("noise", "ignored"),
    }
    assert ROW["episode"]["log"], "the row itself is left as it is"


def test_a_row_without_the_messages_is_refused() -> None:
    with pytest.raises(
        RowRefused, match=r"nothing is at episode\.log, the mapping's path to the messages; the row has messages"
    ):
        read_row({"messages": []}, MAPPING)


def test_a_reward_that_is_no_number_is_refused() -> None:
    with pytest.raises(RowRefused, match="grade is mapped to a reward, but it is not a number"):
        read_row(ROW | {"grade": "A"}, MAPPING)


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": {"a": "colour"}},
        {"columns": {"a": "reward."}},
        {"roles": {"a": "robot"}},
        {"outcomes": {"PASS": "good"}},
        {"tools": [{"type": "function"}]},
        {"role": {}},
    ],
)
def test_an_unknown_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RowMapping.model_validate(wrong)


CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "Done."}]}


def test_words_for_outcomes_are_mapped_and_others_are_refused_by_name() -> None:
    mapping = RowMapping.model_validate({"columns": {"end": "outcome"}, "outcomes": {"PASS": "solved", "-1": "error"}})
    for value, outcome in (("PASS", "solved"), (-1, "error"), (True, "solved"), ("failed", "failed")):
        session, _ = read_row(CHAT | {"end": value}, mapping)
        assert session.verdict.outcome == outcome
    with pytest.raises(RowRefused, match="end is mapped to the outcome, but is 'maybe'; known are solved, failed"):
        read_row(CHAT | {"end": "maybe"}, mapping)
    assert list(mapping.unknown_outcomes(CHAT | {"end": "maybe"})) == ["maybe"]


def test_a_column_that_a_mapping_replaces_is_said_to_be_ignored() -> None:
    mapping = RowMapping.model_validate({"columns": {"end": "outcome"}})
    session, account = read_row(CHAT | {"end": True, "outcome": "failed"}, mapping)
    assert session.verdict.outcome is SessionOutcome.SOLVED
    assert {"field": "outcome", "rows": 1, "becomes": "ignored: end is mapped to it"} in account.entries()


def test_roles_that_need_a_meaning_are_found_where_the_messages_are() -> None:
    assert sorted(RowMapping(messages="episode.log").unknown_roles(ROW)) == ["coder", "exit", "narrator", "shell"]
    assert list(MAPPING.unknown_roles(ROW)) == []
    row = {"messages": [{"role": "robot", "content": ""}, {"role": "user"}]}
    assert list(RowMapping().unknown_roles(row)) == ["robot"]


def test_columns_are_mapped_over_a_layout_that_is_recognised() -> None:
    steps = [{"step_id": 1, "source": "user", "message": "Fix it."}, {"step_id": 2, "source": "agent", "message": "ok"}]
    document = {
        "schema_version": "ATIF-v1.4",
        "agent": {"name": "terminus-2", "version": "1"},
        "steps": steps,
        "extra": {"verdict": "PASS", "points": 0.5},
        "set": "dev",
    }
    columns = {"extra.verdict": "outcome", "extra.points": "reward.tests", "set": "group"}
    mapping = RowMapping.model_validate({"columns": columns, "outcomes": {"PASS": "solved"}})
    reading = overridden(read(layout_of(document), document), mapping, document)
    (session,) = reading.sessions
    assert session.layout == "ATIF" and [step["source"] for step in session.steps] == ["user", "agent"]
    assert (session.verdict.outcome, session.verdict.rewards) == (SessionOutcome.SOLVED, {"tests": 0.5})
    assert (session.origin.group, session.agent["name"], session.agent["version"]) == ("dev", "terminus-2", "1")
    entries = {(entry["field"], entry["becomes"]) for entry in reading.account.entries()}
    assert {("extra.verdict", "outcome"), ("extra.points", "reward.tests"), ("set", "group")} <= entries
    assert ("set", "metadata") not in entries, "as the layout alone reads it"


def layout_of(document: dict[str, Any]) -> Layout:
    layout = recognise(document)
    assert layout
    return layout
