"""A Redis that is stopped, continued, killed and restarted while runs are launched.

`python -m tests.runs.silent_broker` prints the results of the launches and when their runs were done. It needs a data
folder, database and broker of its own.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.runs.storm import Redis, Workers

WAITS = 60.0


def weather(redis: Redis) -> dict[str, Any]:
    from django.test import Client

    from curation.runs.launch import launch
    from curation.runs.models import LIVE, Run
    from curation.runs.workers import broker
    from tests.factories import make_project, make_scenario, make_user

    user = make_user("ada")
    project = make_project(user=user)
    browser = Client(headers={"host": "localhost"})
    browser.force_login(user)

    def start() -> tuple[Run, float]:
        params = {"dry_run": True, "filter": {"name": [make_scenario(project).name]}}
        began = time.monotonic()
        run = launch(project=project, kind="gate", params=params, user=user)
        return run, time.monotonic() - began

    def seconds_until(condition: Any) -> float:
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < WAITS, "it did not happen"
            time.sleep(0.2)
        return time.monotonic() - began

    def is_done(run: Run) -> bool:
        return Run.objects.filter(pk=run.pk).exclude(state__in=LIVE).exists()

    def warns(run: Run) -> bool:
        page = browser.get(f"/p/{project.slug}/runs/{run.pk}/").content.decode()
        return "nothing is lost" in page

    first, _ = start()
    seconds_until(lambda: is_done(first))
    found: dict[str, Any] = {}
    for name in ("silent", "killed"):
        if name == "silent":
            redis.process.send_signal(signal.SIGSTOP)
        else:
            redis.stop()
        run, launching = start()
        second, again = start()
        warned = seconds_until(lambda run=run: warns(run))
        began = time.monotonic()
        warns(run)
        page = time.monotonic() - began
        if name == "silent":
            time.sleep(10)
            redis.process.send_signal(signal.SIGCONT)
        else:
            redis.start()
        back = time.monotonic()
        seconds_until(lambda run=run, second=second: is_done(run) and is_done(second))
        done = time.monotonic() - back
        broker._known._due = 0.0
        third, _ = start()
        quiet = seconds_until(lambda third=third: not warns(third))
        states = sorted(Run.objects.filter(pk__in=[run.pk, second.pk]).values_list("state", flat=True))
        found[name] = {
            **{"launching": launching, "again": again, "warned": warned, "page": page, "done": done, "quiet": quiet},
            "states": states,
        }
    return found


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    folder = Path(os.environ["WINNOW_DATA"])
    own = Redis(urlsplit(os.environ["CELERY_BROKER_URL"]).port or 0, folder)
    workers: Workers | None = None
    try:
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        workers = Workers(folder)
        print(json.dumps(weather(own)))
    finally:
        if workers is not None:
            workers.kill()
        own.process.send_signal(signal.SIGCONT)
        own.stop()
