"""The uplift experiment on the published rows, of which half are spoiled: wrong answers, duplicates, noise.

    WINNOW_DATA=FOLDER python -m benchmarks.uplift [steps] [seeds]

A project of its own gets all rows, approved as they came, and two recipes: `raw` takes all, `curated` those without a
planted flaw. The run trains on both and on as many raw rows as curated ones. Asked for: in each seed the curated rows
gain; the verdict is printed, and needs more than three seeds to be sure. It needs `make consumers`, and takes a quarter
of an hour on two cores that do nothing else.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from curation.projects.models import Project
    from curation.runs.models import Run

STEPS, SEEDS = 250, 3
CONSUMERS = Path(sys.prefix) / "consumers"


def main(steps: int, seeds: int) -> int:
    os.environ["PYTHONPATH"] = str(CONSUMERS)
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        os.environ.setdefault("WINNOW_DATA", folder)
        return measure(steps, seeds)


def measure(steps: int, seeds: int) -> int:
    import django

    django.setup()
    from django.core.management import call_command

    from curation.runs.kinds import kind_of
    from tests.evaluations.evaluating import published
    from tests.evaluations.uplift.worlds import project_of, spoiled

    call_command("migrate", verbosity=0)
    project, split = project_of(spoiled(published("train")), published("val"))
    began = time.perf_counter()
    run = experiment(project, split, steps=steps, seeds=seeds)
    print(f"{time.perf_counter() - began:.0f} s, run {run.pk} is {run.state}")
    for arm in run.result["arms"]:
        each = arm["seconds"] / len(arm["values"])
        print(f"{arm['name']}: {arm['rows']} rows, {arm['values']}, mean {arm['mean']}, {each:.0f} s a training")
    print(json.dumps(run.result["gains"], indent=1))
    print(kind_of("uplift").conclude(run))
    raw, curated, *_ = (arm["values"] for arm in run.result["arms"])
    return int(any(curated[seed] <= raw[seed] for seed in raw))


def experiment(project: "Project", split: str, *, steps: int, seeds: int) -> "Run":
    """Run the experiment on the recipes `raw` and `curated`, to its end."""
    from curation.runs.engine import dispatch
    from curation.runs.launch import launch
    from tests.driving import end

    params: dict[str, Any] = {"before": "recipe/raw", "after": "recipe/curated", "split": split, "seeds": seeds}
    settings = {"steps": str(steps)}
    with mock.patch.object(dispatch, "send_work"):  # this process is the one worker
        run = launch(project=project, kind="uplift", params={**params, "settings": settings}, user=None)
        ended = end(run)
    assert ended.state == "succeeded", (ended.error, list(ended.items.values_list("reason", flat=True)))
    return ended


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int, nargs="?", default=STEPS)
    parser.add_argument("seeds", type=int, nargs="?", default=SEEDS)
    given = parser.parse_args()
    sys.exit(main(given.steps, given.seeds))
