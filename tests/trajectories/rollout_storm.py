"""Rollouts while their workers are killed: `python -m tests.trajectories.rollout_storm <scenarios> <samples> <kills>`.

Works in the database and data folder that the environment names and prints the outcome as JSON; a process of its own,
as `tests.runs.storm`.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from tests.runs.storm import Workers

WEATHER: dict[str, Any] = {"latency": 0.1, "rate_limit": 0.02, "error": 0.02}
SCRIPTS = {
    "solved": ("todo --help", "todo", "echo 'hello world' > greeting.txt", "exit"),
    "checker_failed": ("ls -a", "todo", "exit"),
    "wrong_terminal": ("todo", "panic too hard"),
}
GIVES_UP_AFTER = 330.0


def storm(scenarios: int, samples: int, kills: int) -> dict[str, Any]:
    from django.core.management import call_command

    from curation.runs.launch import launch
    from curation.runs.models import LIVE, Run
    from curation.runs.workers.sandbox import reap_sandboxes
    from tests.model_server import ModelServer

    call_command("migrate", verbosity=0)
    server = ModelServer()
    server.behave(**WEATHER)
    folder = Path(os.environ["WINNOW_DATA"])
    workers = Workers(folder)
    survivors: list[int] = []
    began = time.monotonic()
    try:
        project = fill(scenarios, server.api_base)
        run = launch(project=project, kind="rollout", params={"model": "operator-a", "samples": samples}, user=None)
        marks = [scenarios * samples * (number + 1) // (kills + 2) for number in range(kills)]
        while run.state in LIVE and time.monotonic() - began < GIVES_UP_AFTER:
            run = Run.objects.get(pk=run.pk)
            if marks and run.items_done >= marks[0]:
                marks.pop(0)
                survivors += workers.kill()
                workers.start()
            time.sleep(0.2)
        seconds = time.monotonic() - began
    finally:
        survivors += workers.end()
        server.stop()
    return {
        "state": run.state,
        "error": run.error,
        "seconds": round(seconds, 1),
        "kills_left": len(marks),
        "survivors": survivors,
        "reaped": reap_sandboxes(),
        "records": [f"{path.name}: {path.read_text()}" for path in (folder / "sandbox" / "bubblewrap").iterdir()],
        **figures(run),
    }


def fill(scenarios: int, api_base: str) -> Any:
    """Admitted scenarios, each of which carries the script that its operator plays."""
    from tests.factories import make_endpoint, make_project, make_scenario

    project = make_project("storm")
    values = {"model": "openai/operator-a", "api_base": api_base, "max_concurrency": 32, "params": {"timeout": 5}}
    make_endpoint(project, "operator-a", price_in=1, price_out=2, **values)
    for number in range(scenarios):
        outcome = list(SCRIPTS)[number % len(SCRIPTS)]
        said = f"Work of desk {number} is announced by: todo. SCRIPT[{';;'.join(SCRIPTS[outcome])}]"
        make_scenario(project, f"{outcome} {number}", bundle={"announcement": {"kind": "motd", "text": said}})
    return project


def figures(run: Any) -> dict[str, Any]:
    """The rows in the database, counted beside the run's own figures."""
    from django.db.models import Count

    from curation.runs.models import Call, Item
    from curation.samples.models import Sample
    from curation.trajectories.models import Trajectory, TrajectoryText

    rows = Trajectory.objects.filter(project=run.project)
    calls = Call.objects.filter(run=run)
    twice = calls.filter(status="ok").values("content_hash").annotate(n=Count("id")).filter(n__gt=1)
    return {
        "items": dict(Item.objects.filter(run=run).values_list("state").annotate(n=Count("id")).order_by()),
        "failures": list(Item.objects.filter(run=run, state="failed").values_list("reason", flat=True)[:5]),
        "trajectories": rows.count(),
        "places": len(set(rows.values_list("scenario", "sample_index"))),
        "as_scripted": sum(row.outcome == row.subject.split()[0] for row in rows.select_related("scenario")),
        "texts": TrajectoryText.objects.filter(trajectory__in=rows).count(),
        "samples": Sample.objects.filter(project=run.project).count(),
        "samples_of_rows": len(set(rows.values_list("sample", flat=True))),
        "result": run.result,
        "calls": dict(calls.values_list("status").annotate(n=Count("id")).order_by()),
        "answered_twice": twice.count(),
        "events": list(run.events.order_by("id").values_list("message", flat=True)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", type=int)
    parser.add_argument("samples", type=int)
    parser.add_argument("kills", type=int)
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    print(json.dumps(storm(given.scenarios, given.samples, given.kills)))
