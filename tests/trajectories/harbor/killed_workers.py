"""Workers that are killed while they watch a job of Harbor: `python -m tests.trajectories.harbor.killed_workers FOLDER
PROVIDER AGENTS ATTEMPTS` prints the outcome. `HARBOR_COMMAND` and the like are in the environment.

The worker is killed twice: after the first trial, and while a later one runs.
"""

import json
import os
import signal
import sys
import time
from unittest import mock

from tests.runs.dying_workers import follow, hurry

KILLS = 2


def lead(folder: str, provider: str, agents: list[str], attempts: int) -> dict[str, object]:
    from django.core.management import call_command
    from django.db import connections

    from curation.runs.engine import dispatch
    from curation.runs.launch import launch
    from curation.runs.models import LIVE, Item, ItemState, Run
    from curation.trajectories.harbor.stage import folder_of
    from curation.trajectories.models import Trajectory
    from sandbox.harbor.command import Job
    from tests.factories import make_endpoint, make_project

    call_command("migrate", verbosity=0)
    project = make_project("demo")
    make_endpoint(project, "small", model="openai/small", api_base="http://127.0.0.1:9/v1")
    params = {"tasks": folder, "provider": provider, "agents": agents, "models": ["small"], "attempts": attempts}
    with mock.patch.object(dispatch, "send_work"):
        run = launch(project=project, kind="harbor", params={**params, "concurrent": 1}, user=None)
    job = Job(folder_of(run))
    worker, kills, seen = 0, 0, 0
    while Run.objects.filter(pk=run.pk, state__in=LIVE).exists():
        connections.close_all()  # a child must not inherit an open connection
        worker = worker or os.fork() or follow(run.pk)
        time.sleep(0.05)
        begun = len(list(job.path.glob("*/config.json")))
        saved = Item.objects.filter(run=run, stage="trials", state=ItemState.DONE).count()
        if kills < KILLS and saved > seen and begun > saved:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
            worker, kills, seen = 0, kills + 1, saved
    os.waitpid(worker, 0)
    run = Run.objects.get(pk=run.pk)
    items = Item.objects.filter(run=run, stage="trials").exclude(key="job")
    return {
        "state": run.state,
        "error": run.error,
        "kills": kills,
        "trials": sorted(items.values_list("data__task", "data__agent", "result__rewards__reward"), key=str),
        "trajectories": Trajectory.objects.filter(run=run).values("source_id").distinct().count(),
        "counted": [run.items_total, run.items_done, run.items_failed],
        "runs": job.runs(),
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    tasks, on, with_agents, number = sys.argv[1:]
    with hurry():
        print(json.dumps(lead(tasks, on, with_agents.split(","), int(number))))
