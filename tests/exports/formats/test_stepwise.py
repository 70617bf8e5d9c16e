"""Labels of steps, given by people, are rows for a process reward model."""

from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given

from curation.exports.formats.parts import parts_of
from curation.imports.layouts.messages.write import write_messages
from curation.imports.layouts.rows.read import STEPWISE, read_row
from curation.imports.layouts.rows.stepwise import read_text, write_text
from curation.imports.layouts.session import Step
from curation.imports.sources.rows import RowRefused
from curation.trajectories.models import Outcome
from tests.exports.exporting import approve, export_of, make_approved, reasons, reject, rows
from tests.factories import called, make_imported, make_project, make_run, make_step_value, make_trajectory, make_user
from tests.imports.layouts.messages.test_write import sessions

pytestmark = pytest.mark.django_db(transaction=True)
RECIPE = {"formats": ["stepwise"], "filter": {"status": "approved"}}
FILE = "stepwise.train.jsonl"
DONE = {"source": "agent", "message": "Done."}
ROW = {"prompt": "Sum it.", "completions": ["I look.", "I guess."], "labels": [True, False]}


def test_a_completion_ends_at_each_labelled_step() -> None:
    project, user = make_project(), make_user()
    steps = [called("ls", "a.csv"), called("cat a.csv", "1", 2), called("rm a.csv", "", 3), DONE]
    marks = {"2": {"label": "correct"}, "4": {"label": "risky", "learn": False}}
    labelled = make_imported(project, *steps, marks=marks)
    unlabelled = make_imported(project, *steps, task="another")
    for trajectory in (labelled, unlabelled):
        approve(trajectory.sample, by=user)
    turn = make_approved(project, by=user)
    export = export_of(project, RECIPE)
    assert rows(export, FILE) == [
        {
            "prompt": "[system]\nYou use bash.\n\n[user]\nTask: sum",
            "completions": [
                '[assistant]\n[tool call call_1] bash {"command": "ls"}',
                "[tool]\na.csv\n\n"
                '[assistant]\n[tool call call_2] bash {"command": "cat a.csv"}\n\n[tool]\n1\n\n'
                '[assistant]\n[tool call call_3] bash {"command": "rm a.csv"}',
            ],
            "labels": [True, False],
            "values": [1.0, 0.0],
        }
    ]
    assert reasons(export) == {str(unlabelled.sample_id): "no_step_labels", str(turn.pk): "no_step_labels"}
    assert export.counts["excluded"] == {"no_step_labels": 2}


def test_rejected_sessions_have_labels_too() -> None:
    project, user = make_project(), make_user()
    trajectory = make_imported(project, outcome=Outcome.FAILED, marks={"3": {"label": "wrong"}})
    reject(trajectory.sample, by=user)
    assert rows(export_of(project, RECIPE), FILE)[0]["labels"] == [False]


def test_the_values_of_a_probe_label_steps_that_no_person_has_labelled() -> None:
    project, user = make_project(), make_user()
    trajectory = make_trajectory(project)
    trajectory.text.marks = {"2": {"label": "useless"}}
    trajectory.text.save()
    approve(trajectory.sample, by=user)
    begun = timezone.now()
    old = make_run(project, "probe", finished_at=begun)
    make_step_value(trajectory, 1, old, solved=1, rollouts=8)
    ended = make_run(project, "probe", finished_at=begun)
    for at, solved in ((1, 6), (2, 8), (3, 3)):
        make_step_value(trajectory, at, ended, solved=solved, rollouts=8)
    make_step_value(trajectory, 4, ended, ended=True, solved=1)
    make_step_value(trajectory, 1, make_run(project, "probe"), solved=8, rollouts=8)  # still running
    row = rows(export_of(project, {**RECIPE, "step_labels": "values"}), FILE)[0]
    assert (row["values"], row["labels"]) == ([0.75, 0.0, 0.375, 1.0], [True, False, False, True])
    assert len(row["completions"]) == 4
    assert rows(export_of(project, RECIPE), FILE)[0]["values"] == [0.0]


def test_a_secret_in_a_labelled_session_is_kept_out() -> None:
    project, user = make_project(), make_user()
    key = "AKIA" + "Q3EGRDXV7PLMN5TA"
    trajectory = make_imported(project, called(f"export K={key}", ""), marks={"2": {"label": "correct"}})
    approve(trajectory.sample, by=user)
    assert reasons(export_of(project, RECIPE)) == {str(trajectory.sample_id): "secret"}


def test_the_rows_are_read_as_steps_with_their_labels() -> None:
    session, account = read_row(ROW)
    assert (session.layout, session.learned) == (STEPWISE, {1: True, 2: False})
    assert [step["message"] for step in session.steps] == ["Sum it.", "I look.", "I guess."]
    assert {entry["field"]: entry["becomes"] for entry in account.entries()} == {
        "prompt": "steps",
        "completions": "steps",
        "labels": "learned",
    }
    assert [part.use for part in parts_of(ROW)] == ["context", "learned", "context"]


@pytest.mark.parametrize("wrong", [{"labels": [True]}, {"labels": ["yes", "no"]}, {"completions": "I look."}])
def test_labels_that_do_not_fit_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(RowRefused):
        read_row({**ROW, **wrong})


@given(sessions())
def test_the_text_of_a_session_is_read_as_its_messages(steps: list[Step]) -> None:
    """Ids and names of tools' messages, reasoning and pictures have no place in a text."""
    messages = [message for message in write_messages(steps) if isinstance(message["content"], str)]
    plain = [m for m in messages if not m.get("tool_calls") and "[" not in str(m["content"])]
    if plain:
        found = read_text(write_text(plain), "user")
        assert found == [{"role": m["role"], "content": m["content"]} for m in plain]


def test_a_rows_messages_come_back_with_their_calls() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages: Any = [
        {"role": "system", "content": "Use bash.\n\nAlways."},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "content": "a\n\nb"},
    ]
    assert read_text(write_text(messages), "user") == messages
