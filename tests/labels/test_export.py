"""Labels in the metadata of an export: one column per question, with one type, in every row."""

from pathlib import Path
from typing import Any

import pytest

from curation.labels.models import Label, Question
from curation.projects.access import Access
from curation.review.decisions.decide import decide
from curation.review.labels.save import save_labels
from curation.review.pages.undo import undo_latest
from curation.samples.models import Sample
from tests.exports.exporting import rows, run_export
from tests.exports.files.test_consumers import load, unpack
from tests.factories import make_project
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = {"error": "label", "also": "multi_label", "bad": "rating", "where": "span", "why": "text"}
EMAIL = "ann.lee@acme-billing.com"
SPAN = {"field": "challenger", "start": 0, "end": 7, "label": "a"}
ANSWERS = {"error": "a", "also": ["b", "a"], "bad": 1, "where": [SPAN], "why": f"Ask {EMAIL}."}
EMPTY: dict[str, Any] = {"error": "", "also": [], "bad": -1, "where": [], "why": ""}


def labelled() -> tuple[Access, list[Sample]]:
    """Ten approved samples: two have answers, the second also one of another person."""
    project = make_project(settings_json={"review": {"blind": False}})
    for name, kind in KINDS.items():
        choices = {"rating": [1, 2], "text": []}.get(kind, ["a", "b"])
        Question.objects.create(project=project, name=name, title=name, kind=kind, choices=choices)
    ann, bob = reviewer_of(project), reviewer_of(project)
    samples = [judged(project, instance_id=f"task-{number}") for number in range(10)]
    save_labels(access=ann, sample_id=samples[0].pk, given=ANSWERS)
    save_labels(access=ann, sample_id=samples[1].pk, given={"error": "a"})
    save_labels(access=bob, sample_id=samples[1].pk, given={"error": "b", "bad": 2})
    for sample in samples:
        decide(access=ann, sample_id=sample.pk, action="approve")
    return ann, samples


def test_every_row_has_the_same_columns_and_datasets_loads_them_with_their_types(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    access, samples = labelled()
    recipe = {
        "formats": ["sft-messages"],
        "splits": {"train": 0.5, "val": 0.5},
        "metadata": True,
        "group_by": "instance_id",
    }
    export = run_export(access.project, recipe)

    data = load(tmp_path, path=str(unpack(export, tmp_path / "export")), name="sft-messages")
    found = {row["id"]: row for split in data.values() for row in split}
    labels = {pk: {name: row[f"label_{name}"] for name in KINDS} for pk, row in found.items()}

    first, second, *others = (labels[str(sample.pk)] for sample in samples)
    span = {**SPAN, "revision": ""}
    assert first == {"error": "a", "also": ["a", "b"], "bad": 1, "where": [span], "why": "Ask <EMAIL>."}
    assert second == {**EMPTY, "error": "a", "bad": 2}  # her own answer, and where she gave none that of another
    assert others == [EMPTY] * 8
    types = [str(split.features["label_bad"].dtype) for split in data.values()]
    assert set(types) == {"int64"} and len(data) == 2


def test_an_export_has_the_answers_of_its_launch_and_none_without_metadata() -> None:
    access, samples = labelled()
    save_labels(access=access, sample_id=samples[0].pk, given={"error": "b"})
    undo_latest(access=access)
    recipe = {"formats": ["sft-messages"], "metadata": True}
    export = run_export(access.project, recipe)
    save_labels(access=access, sample_id=samples[0].pk, given={"error": "b", "why": None})
    Question.objects.filter(name="bad").update(archived_at=Label.objects.latest("id").created_at)

    def answers(of: Any) -> dict[str, Any]:
        row = next(row for row in rows(of, "sft-messages.train.jsonl") if row["id"] == str(samples[0].pk))
        return {name: value for name, value in row.items() if name.startswith("label_")}

    before = answers(export)
    assert (before["label_error"], before["label_bad"]) == ("a", 1)
    after = answers(run_export(access.project, recipe))
    assert (after["label_error"], after["label_why"], "label_bad" in after) == ("b", "", False)
    plain = run_export(access.project, {"formats": ["sft-messages"]})
    assert list(rows(plain, "sft-messages.train.jsonl")[0]) == ["messages"]
