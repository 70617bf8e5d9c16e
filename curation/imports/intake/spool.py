"""Keep the spans that exporters send until the next import takes them: one run for all that came in since the last.

A batch is a file in storage, written before the exporter gets its answer. An import is launched first and the batches
are deleted after, so a process that dies in between makes the same spans come in again; turns are told apart by their
content, and are created once.
"""

import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import orjson
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction

from curation.imports.kinds import ImportParams
from curation.imports.sources.stored import store_upload
from curation.projects.models import Project
from curation.projects.removal.erase import cleans_up
from curation.projects.removal.files import delete_folder
from curation.runs.launch import launch
from curation.runs.models import Run

SPOOL = "intake"
MOST_BATCHES = 2000
RETRY_SECONDS = 30


def keep_batch(*, project: Project, user: User, rows: Iterable[object]) -> int:
    """Store the rows of one request durably, and return their number."""
    lines = [orjson.dumps(row) for row in rows]
    if lines:
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}.jsonl"
        default_storage.save(f"{SPOOL}/{project.pk}/{user.pk}/{name}", ContentFile(b"\n".join(lines) + b"\n"))
    return len(lines)


def import_batches() -> list[Run]:
    """Launch an import for each project and sender with stored batches."""
    return [
        run
        for project_id in _listed(SPOOL)[0]
        for user_id in _listed(f"{SPOOL}/{project_id}")[0]
        if (run := _import(int(project_id), int(user_id)))
    ]


@cleans_up(Project)
def delete_batches(project_ids: Sequence[int]) -> None:
    for project_id in project_ids:
        delete_folder(f"{SPOOL}/{project_id}")


def _import(project_id: int, user_id: int) -> Run | None:
    """Launch the import of one sender's batches; none in a project that cannot be changed: there they wait."""
    folder = f"{SPOOL}/{project_id}/{user_id}"
    with transaction.atomic():
        # One process at a time takes a project's batches.
        project = Project.objects.select_for_update(no_key=True).filter(pk=project_id).first()
        if project is None or project.archived_at or project.deleting_at:
            return None
        keys = [f"{folder}/{name}" for name in sorted(_listed(folder)[1])[:MOST_BATCHES]]
        with tempfile.NamedTemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR, suffix=".jsonl") as joined:
            taken: list[str] = []
            for key in keys:
                with default_storage.open(key, "rb") as batch:
                    if taken and joined.tell() + batch.size > settings.MAX_UPLOAD_BYTES:
                        break
                    shutil.copyfileobj(batch, joined)
                taken.append(key)
            if not taken:
                return None
            joined.seek(0)
            name = f"otlp-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.jsonl"
            upload = store_upload(project=project, file=File(joined), name=name)
        run = launch(
            project=project,
            kind="import",
            params=ImportParams(kind="turns", upload=upload, name=name).model_dump(),
            user=User.objects.filter(pk=user_id).first(),
        )
        transaction.on_commit(lambda: _delete(taken))
    return run


def _delete(keys: Sequence[str]) -> None:
    for key in keys:
        default_storage.delete(key)


def _listed(folder: str) -> tuple[list[str], list[str]]:
    try:
        return default_storage.listdir(folder)
    except FileNotFoundError:
        return [], []
