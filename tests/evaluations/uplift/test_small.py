"""The extra `train` for real: a tiny model from scratch learns the published rows. `make consumers` installs it.

Half of the rows are spoiled: wrong answers, duplicates, noise around the answer. `WINNOW_UPLIFT_STEPS` shortens it.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from curation.runs.kinds import kind_of
from curation.runs.launch import launch
from tests.driving import end
from tests.evaluations.evaluating import make_split, published
from tests.evaluations.uplift.worlds import export_of, spoiled
from tests.factories import make_project

INSTALLED = Path(sys.prefix) / "consumers"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.embedded]


@pytest.mark.timeout(3600)
def test_curated_rows_beat_raw_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (INSTALLED / "peft").exists():
        pytest.skip("the trainers are not installed: make consumers")
    monkeypatch.setenv("PYTHONPATH", str(INSTALLED))
    project, rows = make_project(), published("train")
    before, after = export_of(project, spoiled(rows)), export_of(project, rows[::2])
    split = make_split(project, published("val"))
    params = {"before": str(before.pk), "after": str(after.pk), "split": str(split.pk)}
    steps = int(os.environ.get("WINNOW_UPLIFT_STEPS", "250"))
    run = launch(project=project, kind="uplift", params={**params, "settings": {"steps": steps}}, user=None)
    ended = end(run)
    assert ended.state == "succeeded", list(ended.items.values_list("reason", flat=True))
    print(json.dumps(ended.result["arms"], indent=1), json.dumps(ended.result["gains"], indent=1))
    print(kind_of("uplift").conclude(ended))
    raw, curated, _ = ended.result["arms"]
    assert curated["mean"] > raw["mean"] and curated["device"] == "cpu" and curated["tokens"] > 0
