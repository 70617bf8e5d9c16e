"""Imported runs are exported as sessions, with their tools and masks, and as pairs of one task."""

import json
from tempfile import NamedTemporaryFile
from typing import Any

import duckdb
import pytest

from curation.projects.models import Project, Role
from curation.samples.models import Sample
from curation.trajectories.models import Outcome, Pair, Trajectory, TrajectoryText
from curation.trajectories.recorded import RecordedTexts
from tests.exports.exporting import approve, content, export_of, reasons, rows
from tests.factories import BASH, called, make_imported, make_member, make_project, make_user
from tests.review.importing import bring_samples
from tests.trajectories.rolling import run_to_end

pytestmark = pytest.mark.django_db(transaction=True)
DONE = {"source": "agent", "message": "Done."}


def make_approved_run(project: Project, *steps: dict[str, Any], **values: Any) -> Trajectory:
    trajectory = make_imported(project, *steps, **values)
    assert trajectory.sample is not None
    approve(trajectory.sample, by=make_user())
    return trajectory


def test_a_session_has_its_tools_calls_and_results() -> None:
    project = make_project()
    make_approved_run(project, called("ls", "a.csv\n", reasoning_content="Look first."), DONE)
    kept = {"formats": ["sft-messages"], "reasoning": "keep"}
    row = rows(export_of(project, kept), "sft-messages.train.jsonl")[0]
    call = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}}
    assert row == {
        "messages": [
            {"role": "system", "content": "You use bash."},
            {"role": "user", "content": "Task: sum"},
            {"role": "assistant", "content": "", "reasoning_content": "Look first.", "tool_calls": [call]},
            {"role": "tool", "content": "a.csv\n", "tool_call_id": "call_1"},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [BASH],
    }
    dropped = rows(export_of(project, {"formats": ["sft-messages"]}), "sft-messages.train.jsonl")[0]
    assert "Look first." not in str(dropped)


@pytest.mark.parametrize("outcome", [Outcome.SOLVED, Outcome.FAILED, Outcome.UNKNOWN])
def test_the_approval_decides_whatever_the_outcome(outcome: str) -> None:
    project = make_project()
    trajectory = make_imported(project, outcome=outcome)
    assert reasons(export_of(project, {"formats": ["sft-messages"]})) == {str(trajectory.sample_id): "not_approved"}
    assert trajectory.sample is not None
    approve(trajectory.sample, by=make_user())
    assert reasons(export_of(project, {"formats": ["sft-messages"]})) == {}


def test_a_model_learns_only_from_own_steps_that_are_not_masked() -> None:
    project = make_project()
    steps = [
        called("copied", "", 1, is_copied_context=True),
        called("by rule", "", 2, llm_call_count=0),
        called("masked", "", 3),
        called("learned", "out", 4),
        {"source": "user", "message": "Thank you."},
    ]
    make_approved_run(project, *steps, marks={"4": {"learn": False}})
    export = export_of(project, {"formats": ["openai-sft", "sft-prompt-completion"]})
    messages = rows(export, "openai-sft.train.jsonl")[0]["messages"]
    assert [message["weight"] for message in messages if message["role"] == "assistant"] == [0, 0, 0, 1]
    assert messages[-1]["tool_calls"][0]["id"] == "call_4"  # what follows the last learned step is left out
    assert len(rows(export, "sft-prompt-completion.train.jsonl")) == 1


def test_outcome_rewards_and_metadata_of_a_run_are_columns() -> None:
    project = make_project()
    rewards, kept = (
        {"resolved": 1.0, "speed": 0.5},
        {"seed": 7, "note": "ask jane.roe@corp-mail.io", "extra": {"a": [1]}},
    )
    make_approved_run(project, rewards=rewards, reward=1.0, metadata=kept)
    recipe = {"formats": ["sft-messages"], "metadata": True}
    row = rows(export_of(project, recipe), "sft-messages.train.jsonl")[0]
    assert (row["outcome"], row["reward"], row["rewards"]) == ("solved", 1.0, rewards)
    assert row["metadata"] == {"seed": 7, "note": "ask <EMAIL>", "extra": {"a": [1]}}


def test_outcome_rewards_and_metadata_of_an_imported_row_are_columns() -> None:
    project = make_project()
    user = make_member(project, role=Role.ADMIN)
    line = {"messages": [{"role": "user", "content": "Sort."}, {"role": "assistant", "content": "sort"}]}
    bring_samples(project, user, [{**line, "resolved": False, "lang": "bash", "reward.note": "none"}])
    approve(Sample.objects.get(), by=user)
    recipe = {"formats": ["sft-messages"], "metadata": True, "parquet": True}
    export = export_of(project, recipe)
    columns = "outcome, reward, rewards, metadata"
    with NamedTemporaryFile(suffix=".parquet") as file:
        file.write(content(export, "sft-messages.train.parquet"))
        file.flush()
        query = f"SELECT {columns} FROM read_parquet(?)"  # noqa: S608 - names of our own
        (found,) = duckdb.connect().execute(query, [file.name]).fetchall()
    outcome, reward, *texts = found
    assert (outcome, reward) == ("failed", 0.0)
    assert list(map(json.loads, texts)) == [{"resolved": 0.0}, {"lang": "bash", "reward.note": "none"}]


def test_a_mark_after_the_approval_needs_another_one() -> None:
    project = make_project()
    trajectory = make_approved_run(project)
    TrajectoryText.objects.filter(trajectory=trajectory).update(marks={"2": {"learn": False}})
    assert reasons(export_of(project, {"formats": ["sft-messages"]})) == {str(trajectory.sample_id): "not_as_approved"}


def test_an_approved_session_is_compared_by_its_digest_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    trajectory = make_approved_run(project)
    first = content(export_of(project, {"formats": ["sft-messages"]}), "sft-messages.train.jsonl")

    def refuse(self: RecordedTexts) -> str:
        raise AssertionError("the session is hashed again")

    with monkeypatch.context() as patched:
        patched.setattr(RecordedTexts, "sha256", property(refuse))
        again = export_of(project, {"formats": ["sft-messages"]})
    assert content(again, "sft-messages.train.jsonl") == first
    text = TrajectoryText.objects.get(trajectory=trajectory)
    text.steps[-1]["message"] = "rm -rf /"
    text.save()
    assert reasons(export_of(project, {"formats": ["sft-messages"]})) == {str(trajectory.sample_id): "not_as_approved"}


def test_a_solved_run_is_preferred_to_a_failed_one_of_its_task() -> None:
    project = make_project()
    good = make_approved_run(project, called("ls", "root@aef06a978b50\n", 7), called("awk ^X", "", 8), DONE)
    make_approved_run(project, called("ls", "root@1a629a349228\n"), called("awk", "", 2), DONE, outcome=Outcome.FAILED)
    make_imported(project, called("pwd", ""), outcome=Outcome.ERROR)
    make_imported(project, called("pwd", ""), outcome=Outcome.UNKNOWN)
    make_imported(project, called("pwd", ""), outcome=Outcome.FAILED, task="another")
    run = run_to_end(project, "pairs", source="trajectories")
    pair = Pair.objects.get()
    assert (run.result["pairs"], pair.chosen, pair.at, pair.subject) == (1, good, 3, "sum")
    recipe = {"formats": ["dpo"], "filter": {"status": "approved"}}
    row = rows(export_of(project, recipe), "dpo.train.jsonl")[0]
    assert [message["role"] for message in row["prompt"]] == ["system", "user", "assistant", "tool"]
    (chosen,), (rejected,) = row["chosen"], row["rejected"]
    assert chosen["tool_calls"][0]["function"]["arguments"] == {"command": "awk ^X"}
    assert rejected["tool_calls"][0]["function"]["arguments"] == {"command": "awk"}
    assert row["tools"] == [BASH]


def test_a_masked_step_is_no_chosen_answer() -> None:
    project = make_project()
    good = make_approved_run(project, called("awk ^X", ""), DONE, marks={"2": {"learn": False}})
    make_imported(project, called("awk", ""), outcome=Outcome.FAILED)
    run_to_end(project, "pairs", source="trajectories")
    export = export_of(project, {"formats": ["dpo"], "filter": {"status": "approved"}})
    assert reasons(export)[str(good.sample_id)] == "not_learned"


def test_equal_sessions_are_one_row_and_sessions_with_the_same_end_are_two() -> None:
    project = make_project()
    long = " ".join(f"word{number}" for number in range(40))
    make_approved_run(project, called(long, "root@aef06a978b50", 7), DONE)
    make_approved_run(project, called(long, "root@aef06a978b50", 8), DONE)
    make_approved_run(project, called(long[::-1], "root@aef06a978b50", 9), DONE)
    export = export_of(project, {"formats": ["sft-messages"]})
    assert sorted(reasons(export).values()) == ["duplicate"]
