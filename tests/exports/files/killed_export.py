"""Steps of the test that kills an export's worker: `python -m tests.exports.files.killed_export STEP`, a process each.

`launch` prints the run, `work` drives it, `look` prints the downloadable files, `finish` drives it to its end and
checks every file. All use the database in `WINNOW_DATA`.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path


def launch() -> None:
    from curation.projects.models import Project
    from curation.runs.launch import launch as launch_run

    project = Project.objects.get(slug="bench")
    recipe = {"formats": ["sft-messages", "dpo"], "filter": {"status": "approved"}, "gzip": False}
    print(launch_run(project=project, kind="export", params={"recipe": recipe}, user=None).pk)


def work(run: int) -> None:
    from curation.runs.engine.worker import drive

    for _ in range(3):
        drive(run)


def look(run: int) -> None:
    from django.contrib.auth.models import User
    from django.test import Client

    from curation.exports.models import Export
    from curation.projects.models import Project
    from tests.factories import make_member

    export = Export.objects.get(run=run)
    reader = User.objects.filter(username="reader").first()
    reader = reader or make_member(Project.objects.get(slug="bench"), User.objects.create(username="reader"))
    client = Client(SERVER_NAME="localhost")
    client.force_login(reader)
    names = ["sft-messages.train.jsonl", "dpo.train.jsonl", "frozen.jsonl", "manifest.json", "archive.tar"]
    answers = [client.get(f"/api/v1/exports/{export.pk}/files/{name}").status_code for name in names]
    listed = client.get(f"/api/v1/exports/{export.pk}").json()
    page = client.get(f"/p/bench/exports/{export.pk}/").status_code
    print(json.dumps({"answers": answers, "files": listed["files"], "state": listed["state"], "page": page}))


def finish(run: int) -> None:
    from django.core.files.storage import default_storage
    from django.utils import timezone

    from curation.exports.models import Export
    from curation.runs.engine.reap import reap_all
    from curation.runs.models import Item, ItemState

    late = timezone.now() - timedelta(seconds=1)
    Item.objects.filter(run=run, state=ItemState.CLAIMED).update(lease_until=late)
    reap_all()
    work(run)
    export = Export.objects.get(run=run)
    assert export.ready, export.run.state
    stored = set()
    for file in export.files.all():
        with default_storage.open(file.stored_as) as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        assert (digest, default_storage.size(file.stored_as)) == (file.sha256, file.bytes), file.name
        stored.add(default_storage.path(file.stored_as))
    folder = Path(default_storage.path(f"exports/{export.pk}"))
    found = {str(path) for path in folder.rglob("*") if path.is_file()}
    assert found == stored, found ^ stored
    print(json.dumps(export.counts["rows"]))


if __name__ == "__main__":
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    from curation.runs.engine import dispatch

    dispatch.send_work = lambda *args: None
    STEPS: dict[str, Callable[..., None]] = {"launch": launch, "work": work, "look": look, "finish": finish}
    STEPS[sys.argv[1]](*map(int, sys.argv[2:]))
