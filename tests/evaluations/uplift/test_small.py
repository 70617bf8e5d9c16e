"""The extra `train` for real: a tiny model from scratch learns the published rows. `make consumers` installs it.

`WINNOW_UPLIFT_STEPS` shortens `python -m benchmarks.uplift`, whose experiment this is.
"""

import os

import pytest

from benchmarks.uplift import CONSUMERS, STEPS, experiment
from curation.runs.kinds import kind_of
from tests.evaluations.evaluating import published
from tests.evaluations.uplift.worlds import project_of, spoiled

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.embedded]


@pytest.mark.timeout(3600)
def test_curated_rows_beat_raw_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (CONSUMERS / "peft").exists():
        pytest.skip("the trainers are not installed: make consumers")
    monkeypatch.setenv("PYTHONPATH", str(CONSUMERS))
    project, split = project_of(spoiled(published("train")), published("val"))
    steps = int(os.environ.get("WINNOW_UPLIFT_STEPS", STEPS))
    ended = experiment(project, split, steps=steps, seeds=3)
    print(ended.result["arms"], ended.result["gains"], kind_of("uplift").conclude(ended))
    raw, curated, _ = ended.result["arms"]
    assert curated["mean"] > raw["mean"] and curated["device"] == "cpu" and curated["tokens"] > 0
