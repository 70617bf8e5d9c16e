"""Two worker processes on one run: `python -m tests.runs.two_workers <items> <concurrency>` prints the outcome.

Works in the database that the environment names. With `--drive <run>` it is one of the two.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]


def lead(items: int, concurrency: int) -> dict[str, object]:
    from django.core.management import call_command
    from django.db.models import Count, Max

    from curation.runs.engine import dispatch
    from curation.runs.models import Call, Item, Run
    from tests.model_server import ModelServer
    from tests.runs.asking import make_asked, start

    call_command("migrate", verbosity=0)
    server = ModelServer()
    try:
        server.behave(latency=0.05)
        with mock.patch.object(dispatch, "send_work"):
            run = start(make_asked(server, max_concurrency=concurrency), n=items)
        command = [sys.executable, "-m", "tests.runs.two_workers", "--drive", str(run.pk)]
        workers = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
        # On a busy machine one would do all of it while the other starts.
        for worker in workers:
            assert worker.stdout and worker.stdout.readline() == b"ready\n"
        for worker in workers:
            assert worker.stdin
            worker.stdin.close()
        codes = [worker.wait(timeout=200) for worker in workers]
        counts = server.counts()
    finally:
        server.stop()
    run = Run.objects.get(pk=run.pk)
    drivers = Item.objects.filter(run=run, stage="ask").values_list("result__cached", flat=True)
    return {
        "codes": codes,
        "state": run.state,
        "answers": run.result.get("answers"),
        "done": run.items_done,
        "items": dict(Item.objects.filter(run=run).values_list("state").annotate(n=Count("id")).order_by()),
        "most_claims": Item.objects.filter(run=run).aggregate(n=Max("claims"))["n"],
        "asked": counts.asked,
        "most_times_one_was_answered": max(counts.answers.values()),
        "most_at_once": counts.most_at_once,
        "from_the_record": sum(bool(cached) for cached in drivers),
        "calls": Call.objects.filter(run=run).count(),
        "calls_counted": run.calls,
        "workers": len({item.result["by"] for item in Item.objects.filter(run=run, stage="ask")}),
    }


def follow(run_id: int) -> None:
    from curation.runs.engine import dispatch
    from curation.runs.engine.worker import drive
    from curation.runs.models import LIVE, Run

    print("ready", flush=True)
    sys.stdin.read()  # ends when both are ready
    with mock.patch.object(dispatch, "send_work"):
        while Run.objects.filter(pk=run_id, state__in=LIVE).exists():
            drive(run_id)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("items", type=int, nargs="?")
    parser.add_argument("concurrency", type=int, nargs="?")
    parser.add_argument("--drive", type=int)
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from tests.runs.asking import register_asking

    register_asking()
    if given.drive:
        follow(given.drive)
    else:
        print(json.dumps(lead(given.items, given.concurrency)))
