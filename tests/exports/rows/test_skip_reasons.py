"""Each skipped sample is listed with its reason."""

from typing import Any

import pytest
from django.db import DataError, connection

from curation.duels.models import Exclusion
from curation.samples.models import Flag, SampleStatus
from tests.exports.exporting import approve, export_of, make_approved, reasons, rows
from tests.factories import HISTORY, make_duel, make_project, make_sample, make_user, set_history

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = {"formats": ["sft-messages", "dpo"]}
LONG = "THOUGHT: " + "a" * 8_000


SKIPPED: list[tuple[dict[str, Any], str]] = [
    ({"bucket": "unparsed", "score": None}, "unparsed"),
    ({"flags": Flag.INFRA}, "infra_error"),
    ({"flags": Flag.LEAK}, "leak"),
    ({"challenger": " \n"}, "no_answer"),
    ({"challenger": "<think>let me see</think>ls"}, "thinking"),
    ({"instance_id": "acme__billing-9"}, "excluded_instance"),
]
HISTORIES: list[tuple[list[object], str]] = [
    ([{"role": "user", "content": "  "}], "empty_prompt"),
    ([*HISTORY, {"role": "assistant", "content": ""}], "empty_turn"),
    ([*HISTORY, {"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}], "bad_message"),
    ([*HISTORY, {"role": "narrator", "content": "x"}], "bad_message"),
    ([*HISTORY, "text"], "bad_message"),
    ([{"role": "user", "content": "half of a pair: \ud800"}], "not_utf8"),
]


def test_skipped_approved_samples_are_listed_and_give_no_row() -> None:
    project = make_project()
    expected = {str(make_approved(project, **values).pk): reason for values, reason in SKIPPED}
    Exclusion.objects.create(project=project, instance_id="acme__billing-9", reason="broken environment")
    without_texts = str(approve(make_sample(project), by=make_user()).pk)
    make_approved(make_project())  # of another project: it is not read
    export = export_of(project, BOTH)
    assert reasons(export) == expected | {without_texts: "no_answer"}
    assert not export.files.exclude(format="").exists()
    assert export.counts["excluded"] == dict.fromkeys(expected.values(), 1) | {"no_answer": 2}
    assert export.counts["samples"] == len(expected) + 1
    examples = {reason: [sample] for sample, reason in expected.items()}
    assert export.examples == examples | {"no_answer": [*examples["no_answer"], without_texts]}


def test_histories_that_cannot_be_a_prompt_give_no_row() -> None:
    project, expected = make_project(), {}
    for history, reason in HISTORIES:
        sample = make_approved(project)
        if reason == "not_utf8" and connection.vendor == "postgresql":
            with pytest.raises(DataError):  # PostgreSQL does not even store it
                set_history(sample.duel.prompt, history)
        else:
            set_history(sample.duel.prompt, history)
            expected[str(sample.pk)] = reason
    assert reasons(export_of(project, BOTH)) == expected


def test_unapproved_samples_are_listed_if_they_match_the_filter() -> None:
    project, user = make_project(), make_user()
    pending, unsure = make_duel(project).sample, make_duel(project, status=SampleStatus.NEEDS_REFINE).sample
    rejected, approved = make_duel(project, status=SampleStatus.REJECTED).sample, make_approved(project, by=user)
    export = export_of(project, BOTH)
    assert pending and unsure and rejected
    assert reasons(export) == {
        str(pending.pk): "not_approved",
        str(unsure.pk): "not_approved",
        str(rejected.pk): "rejected",
    }
    assert [row["sample"] for row in rows(export, "frozen.jsonl") if row["rows"]] == [str(approved.pk)]
    assert reasons(export_of(project, {**BOTH, "filter": {"status": "approved"}})) == {}


def test_the_same_text_on_both_sides_makes_no_pair_and_a_leak_that_a_person_cleared_skips_nothing() -> None:
    project = make_project()
    sample = make_approved(project, king="THOUGHT: x\n", challenger="THOUGHT: x")
    make_approved(project, flags=Flag.LEAK, leak_cleared=True)
    export = export_of(project, BOTH)
    assert reasons(export) == {str(sample.pk): "identical"}
    assert [len(rows(export, f"{name}.train.jsonl")) for name in ("sft-messages", "dpo")] == [2, 1]


def test_a_row_over_max_tokens_is_missing_in_the_formats_where_it_is_too_long() -> None:
    project = make_project()
    sample = make_approved(project, king=LONG)
    export = export_of(project, {**BOTH, "max_tokens": 1_000})
    assert [(row["formats"], row["reason"]) for row in rows(export, "excluded.jsonl")] == [(["dpo"], "too_long")]
    assert reasons(export) == {str(sample.pk): "too_long"}
