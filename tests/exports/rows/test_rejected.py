"""Rejected samples are rows to avoid, and the other side of approved answers to their prompt."""

from typing import Any

import pytest
from django.core.files.storage import default_storage

from curation.duels.models import Answer
from curation.exports.models import Export
from curation.exports.pages.preview import preview
from curation.exports.provenance.trace import exported_rows, trace
from curation.exports.recipes.recipe import Recipe
from curation.projects.models import Project
from curation.samples.models import Flag, Sample
from curation.trajectories.models import Outcome
from tests.exports.exporting import (
    answer,
    approve,
    content,
    export_of,
    make_approved,
    make_rejected,
    reasons,
    reject,
    rows,
    same_prompt,
)
from tests.exports.hygiene.test_contamination import make_split
from tests.exports.provenance.test_trace import make_call, make_item
from tests.factories import called, make_imported, make_project, make_trajectory, make_user, ticket

pytestmark = pytest.mark.django_db(transaction=True)
APPROVED = {"filter": {"status": "approved"}}
KTO: dict[str, Any] = {"formats": ["kto"], "sources": ["decisions"], **APPROVED}
FILE = "kto.train.jsonl"


def fill(project: Project, approved: int, rejected: int) -> tuple[list[Sample], list[Sample]]:
    user = make_user()
    won = [make_approved(project, by=user, challenger=answer(number)) for number in range(approved)]
    return won, [make_rejected(project, by=user, challenger=answer(100 + number)) for number in range(rejected)]


def labels(export: Export) -> list[tuple[bool, str]]:
    return [(row["label"], row["completion"][0]["content"]) for row in rows(export, FILE)]


def test_approved_samples_are_true_and_rejected_ones_false() -> None:
    project = make_project()
    _, lost = fill(project, 5, 5)
    export = export_of(project, {**KTO, "trainer": "trl"})
    assert labels(export) == [(True, answer(n)) for n in range(5)] + [(False, answer(100 + n)) for n in range(5)]
    assert (reasons(export), export.counts["samples"], export.counts["exported"]) == ({}, 10, 10)
    weights = {"desirable_weight": [1.0, 1.33], "undesirable_weight": [0.75, 1.0]}
    assert export.counts["labels"] == {"kto": {"desirable": 5, "undesirable": 5, **weights}}
    entry = rows(export, "frozen.jsonl")[5]
    assert entry["decision"] == str(lost[0].decisions.get().pk) and "text_sha256" not in entry
    card = content(export, "README.md").decode()
    assert "| kto | 5 | 5 | 1 to 1.33 | 0.75 to 1 |" in card and "row's `repo`" in card
    assert "5 rows approved by people, 5 rejected by people, to be avoided." in card
    assert b'"rejected": 5' in content(export, "manifest.json")


def test_the_configuration_weighs_the_labels_against_each_other() -> None:
    for approved, rejected, weight in ((4, 1, "undesirable_weight: 4.0"), (1, 3, "\ndesirable_weight: 3.0")):
        project = make_project()
        fill(project, approved, rejected)
        assert weight in content(export_of(project, {**KTO, "trainer": "trl"}), "trl-kto.yaml").decode()


def test_one_label_alone_is_a_warning() -> None:
    project = make_project()
    fill(project, 2, 0)
    export = export_of(project, {**KTO, "trainer": "trl"})
    assert export.counts["warnings"][0].startswith("kto has no rows to avoid: reject samples, or take the opponents")
    assert b"_weight" not in content(export, "trl-kto.yaml")


def test_a_preview_counts_them_as_the_export_does() -> None:
    project = make_project()
    fill(project, 2, 3)
    found = preview(project=project, recipe=Recipe.model_validate(KTO))
    export = export_of(project, KTO)
    assert found.counts["rows"] == export.counts["rows"] == {"kto": {"train": 5}}
    assert found.counts["labels"] == export.counts["labels"]
    assert (found.approved, found.decided, found.checked, found.exact) == (2, 5, 5, True)
    changes = preview(project=project, recipe=Recipe.model_validate(KTO), since=export).changes
    assert changes is not None and changes.same == 5


def test_without_decisions_as_a_source_they_stay() -> None:
    project = make_project()
    fill(project, 2, 2)
    export = export_of(project, {**KTO, "sources": ["duels"]})
    assert [label for label, _ in labels(export)] == [True, False, True, False]  # the opponents of the duels


def test_rejected_samples_give_no_row_in_formats_without_labels() -> None:
    project = make_project()
    _, lost = fill(project, 1, 1)
    export = export_of(project, {**KTO, "formats": ["kto", "sft-messages"]})
    assert len(rows(export, "sft-messages.train.jsonl")) == 1
    left = rows(export, "excluded.jsonl")
    assert [(row["sample"], row["formats"]) for row in left] == [(str(lost[0].pk), ["sft-messages"])]


def test_leaks_secrets_and_held_out_rows_stay_here_too() -> None:
    project, user = make_project(), make_user()
    fill(project, 1, 0)
    leaking = make_rejected(project, by=user, flags=Flag.LEAK)
    key = "AKIA" + "Q3EGRDXV7PLMN5TA"
    secret = make_rejected(project, by=user, challenger=f"THOUGHT: {ticket(7)}\n\n```bash\nexport KEY={key}\n```")
    held = make_rejected(project, by=user, challenger=answer(8))
    history = held.duel.prompt.text.history
    split = make_split(project, ("\n\n".join(message["content"] for message in history), answer(8)))
    split_row = split.rows.get()
    split_row.text.messages = history
    split_row.text.save()
    export = export_of(project, {**KTO, "held_out": [f"split/{split.pk}"]})
    assert reasons(export) == {str(leaking.pk): "leak", str(secret.pk): "secret", str(held.pk): "contaminated"}
    assert len(rows(export, FILE)) == 1


def test_an_answer_that_is_approved_and_rejected_is_only_learned() -> None:
    project, user = make_project(), make_user()
    kept, lost = make_approved(project, by=user), make_rejected(project, by=user)
    same_prompt(kept, lost)
    export = export_of(project, KTO)
    assert [label for label, _ in labels(export)] == [True]
    assert reasons(export) == {str(lost.pk): "contradicted"}


def test_a_rejected_answer_that_is_nearly_an_approved_one_is_no_duplicate() -> None:
    project, user = make_project(), make_user()
    long = answer(1).replace("THOUGHT:", " ".join(["THOUGHT:", *map(ticket, range(2, 12))]))
    kept = make_approved(project, by=user, challenger=long)
    lost = make_rejected(project, by=user, challenger=long.replace("ls", "rm"))
    again = make_rejected(project, by=user, challenger=long.replace("ls", "rm -f"))
    same_prompt(kept, lost, again)
    export = export_of(project, KTO)
    assert [label for label, _ in labels(export)] == [True, False]
    assert reasons(export) == {str(again.pk): "duplicate"}


def test_each_own_step_of_a_rejected_session_is_to_be_avoided() -> None:
    project, user = make_project(), make_user()
    fill(project, 1, 0)
    failed = make_imported(
        project, called("ls", ""), called("rm", "", 2), outcome=Outcome.UNKNOWN, marks={"2": {"learn": False}}
    )
    broken = make_imported(project, called("pwd", ""), outcome=Outcome.ERROR)
    shell = make_trajectory(project, outcome=Outcome.NO_TERMINAL, terminal="", commands=("todo",), outputs=("",))
    for trajectory in (failed, broken, shell):
        reject(trajectory.sample, by=user)
    export = export_of(project, {**KTO, "formats": ["kto"]})
    assert reasons(export) == {str(broken.sample_id): "no_negative"}
    avoided = [row["completion"][0] for row in rows(export, FILE) if not row["label"]]
    assert avoided[0]["tool_calls"][0]["function"]["arguments"] == {"command": "rm"}
    assert [message["content"] for message in avoided[1:]] == ["todo"]


def test_caps_count_the_two_labels_apart() -> None:
    project = make_project()
    fill(project, 3, 3)
    export = export_of(project, {**KTO, "caps": {"repo": 2}})
    assert [label for label, _ in labels(export)] == [True, True, False, False]


def test_approved_answers_are_preferred_to_rejected_ones_of_their_prompt() -> None:
    project, user = make_project(), make_user()
    kept, other = (make_approved(project, by=user, challenger=answer(number)) for number in (1, 2))
    lost = [make_rejected(project, by=user, challenger=answer(number)) for number in (3, 4)]
    make_rejected(project, by=user)  # of another prompt
    same_prompt(kept, *lost)
    same_prompt(other)
    export = export_of(project, {"formats": ["dpo"], **APPROVED})
    pairs = [(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in rows(export, "dpo.train.jsonl")]
    assert pairs == [(answer(1), answer(3)), (answer(1), answer(4))]
    assert reasons(export) == {str(other.pk): "no_opponent", **{str(sample.pk): "rejected" for sample in lost}}
    found = preview(project=project, recipe=Recipe.model_validate({"formats": ["dpo"], **APPROVED}), since=export)
    assert found.changes is not None and found.changes.same == 2
    assert (found.counts["rows"], found.approved) == ({"dpo": {"train": 2}}, 2)


def test_a_rejected_answer_that_leaks_is_on_no_side() -> None:
    project, user = make_project(), make_user()
    kept = make_approved(project, by=user)
    lost = make_rejected(project, by=user, challenger=answer(3), flags=Flag.LEAK)
    same_prompt(kept, lost)
    export = export_of(project, {"formats": ["dpo"], **APPROVED})
    assert reasons(export)[str(kept.pk)] == "no_opponent"


def test_the_rows_of_a_prompt_lead_to_the_rejected_answer_and_back() -> None:
    project, user = make_project(), make_user()
    kept = make_approved(project, by=user, challenger=answer(1))
    lost = make_rejected(project, by=user, challenger=answer(2))
    same_prompt(kept, lost)
    call = make_call(make_item(project, "1:0"), cost="0.25")
    Answer.objects.filter(pk=lost.duel.challenger_id).update(call=call)
    export = export_of(project, {"formats": ["dpo"], **APPROVED})
    (row,) = rows(export, "frozen.jsonl")[0]["rows"]
    assert (row["source"], row["against"]) == ("decisions", str(lost.pk))
    steps = trace(export=export, sha256=row["sha256"]).steps
    assert str(lost.duel.challenger_id) in [step.id for step in steps if step.title.startswith("Rejected answer")]
    assert [line.row["sha256"] for _, lines in exported_rows(call) for line in lines] == [row["sha256"]]
    assert list(export.frozen.values_list("skipped", flat=True)) == [False, False]
    assert default_storage.exists(export.files.get(name="dpo.train.jsonl").stored_as)


def test_imported_answers_to_one_history_are_one_prompt() -> None:
    from curation.projects.models import Role
    from tests.factories import make_member
    from tests.review.importing import bring_samples

    project = make_project()
    user = make_member(project, role=Role.ADMIN)
    asked = [{"role": "user", "content": "Sort it."}]
    given = [(asked, "sort"), (asked, "sort -r"), ([{"role": "user", "content": "Other."}], "shuf")]
    lines = [{"messages": [*history, {"role": "assistant", "content": text}]} for history, text in given]
    bring_samples(project, user, lines)
    samples = list(Sample.objects.of(project).order_by("pk"))
    approve(samples[0], by=user)
    for sample in samples[1:]:
        reject(sample, by=user)
    export = export_of(project, {"formats": ["dpo"], **APPROVED})
    assert [
        (row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in rows(export, "dpo.train.jsonl")
    ] == [("sort", "sort -r")]
    assert export.counts["samples"] == 2
