"""The uplift experiment on the published rows, of which half are spoiled: wrong answers, duplicates, noise.

    python -m benchmarks.uplift [steps] [seeds]

A project of its own gets all rows, approved as they came, and two recipes: `raw` takes all, `curated` those without a
planted flaw. The run trains on both and on as many raw rows as curated ones. Asked for: the curated rows gain more than
the seeds differ. The trainer's settings were chosen on the published held-out rows with seeds 1 and 2, so this takes
other ones: an eighth of the published training rows, and seeds from 11. It needs `make consumers`, and takes 20 minutes
on two cores that do nothing else.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from curation.projects.models import Project
    from curation.runs.models import Run
    from tests.evaluations.uplift.worlds import Row

STEPS, SEEDS, FIRST_SEED = 250, 5, 11
HELD_OUT = 8
CONSUMERS = Path(sys.prefix) / "consumers"


def main(arguments: Sequence[str]) -> int:
    """Measures in a process of its own, whose data folder is deleted."""
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        here = os.environ | {"WINNOW_DATA": folder, "PYTHONPATH": str(CONSUMERS), "LOG_LEVEL": "WARNING"}
        command = [sys.executable, "-m", "benchmarks.uplift", "--measure", *arguments]
        return subprocess.run(command, env=here, check=False).returncode


def measure(steps: int, seeds: int) -> int:
    from django.core.management import call_command

    from curation.runs.kinds import kind_of
    from tests.evaluations.evaluating import published
    from tests.evaluations.uplift.worlds import project_of, spoiled

    call_command("migrate", verbosity=0)
    rows = published("train")
    held_out = rows[::HELD_OUT]
    asked = {prompt_of(row) for row in held_out}
    project, split = project_of(spoiled([row for row in rows if prompt_of(row) not in asked]), held_out)
    began = time.perf_counter()
    run = experiment(project, split, steps=steps, seeds=seeds, seed=FIRST_SEED)
    print(f"{time.perf_counter() - began:.0f} s, run {run.pk} is {run.state}")
    for arm in run.result["arms"]:
        each = arm["seconds"] / len(arm["values"])
        print(f"{arm['name']}: {arm['rows']} rows, {arm['values']}, mean {arm['mean']}, {each:.0f} s a training")
    print(json.dumps(run.result["gains"], indent=1))
    print(kind_of("uplift").conclude(run))
    return int(any((gain["low"] or 0.0) <= 0 for gain in run.result["gains"]))


def prompt_of(row: "Row") -> str:
    return str(row["messages"][-2]["content"])


def experiment(project: "Project", split: str, **given: int) -> "Run":
    """Run the experiment on the recipes `raw` and `curated`, to its end. `given`: `steps`, `seeds`, `seed`."""
    from curation.runs.engine import dispatch
    from curation.runs.launch import launch
    from tests.driving import end

    params: dict[str, Any] = {"before": "recipe/raw", "after": "recipe/curated", "split": split}
    settings = {"steps": str(given.pop("steps"))}
    with mock.patch.object(dispatch, "send_work"):  # this process is the one worker
        run = launch(project=project, kind="uplift", params={**params, **given, "settings": settings}, user=None)
        ended = end(run)
    assert ended.state == "succeeded", (ended.error, list(ended.items.values_list("reason", flat=True)))
    return ended


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int, nargs="?", default=STEPS)
    parser.add_argument("seeds", type=int, nargs="?", default=SEEDS)
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    sys.exit(measure(given.steps, given.seeds) if given.measure else main(sys.argv[1:]))
