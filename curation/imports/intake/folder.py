"""Take files from the folder `WATCH_FOLDER`: `PROJECT/file` has turns, `PROJECT/KIND/file` rows of that kind.

A file is taken when nobody has written to it for a while. It is copied into storage, an import is launched, and it
is moved to `done/` beside it, or to `failed/` with the reason in a text file. Its content is recorded in the audit log
with the launch: if the process dies before the move, the file is moved later, and not imported again.
"""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.db import transaction

from curation.imports.kinds import ImportParams
from curation.imports.row_kinds import import_kind
from curation.imports.sources.open import open_path
from curation.imports.sources.rows import SourceError
from curation.imports.sources.stored import hold_uploads, store_upload
from curation.projects.audit import record
from curation.projects.models import AuditEntry, Project
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.web.problems import Problem

logger = logging.getLogger(__name__)

QUIET_SECONDS = 5.0
TAKEN = "intake.file"
DONE, FAILED = "done", "failed"
ENDINGS_OF_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload")


def take_files() -> list[Run]:
    """Launch an import for each new file, and return the runs."""
    if settings.WATCH_FOLDER is None:
        return []
    runs = []
    for folder in _folders(settings.WATCH_FOLDER):
        project = Project.objects.filter(slug=folder.name, archived_at=None, deleting_at=None).first()
        if project is None:
            continue
        inner = [one for one in _folders(folder) if one.name not in (DONE, FAILED)]
        for kind, at in [("turns", folder), *((one.name, one) for one in inner)]:
            for path in _files(at):
                if run := _take(project, kind, path):
                    runs.append(run)
    return runs


def _take(project: Project, kind: str, path: Path) -> Run | None:
    """Import one file. None if its content was imported before, or if it cannot be: then the reason is beside it."""
    try:
        import_kind(kind)
        with open_path(path) as source:
            digest = source.digest
        with path.open("rb") as file:
            upload = store_upload(project=project, file=File(file), name=path.name)
        params = ImportParams(kind=kind, upload=upload, name=path.name[-180:]).model_dump()
        with transaction.atomic():
            hold_uploads(project.pk)  # one process at a time launches for a project
            if before := _run_of(project, kind, digest):
                reason = f"Run {before.pk} has imported this content."
                transaction.on_commit(lambda: _move(path, DONE, reason))
                return None
            run = launch(project=project, kind="import", params=params, user=None)
            data = {"sha256": digest, "kind": kind, "run": run.pk}
            record(actor=None, project=project, action=TAKEN, subject=path.name, data=data)
    except (SourceError, Problem) as refused:
        _move(path, FAILED, refused.detail if isinstance(refused, Problem) else str(refused))
        return None
    except FileNotFoundError:  # another process took it
        return None
    _move(path, DONE, "")
    return run


def _run_of(project: Project, kind: str, digest: str) -> Run | None:
    """Return the run that imported this content from the folder, unless it is deleted."""
    taken = AuditEntry.objects.filter(project=project, action=TAKEN, data__sha256=digest, data__kind=kind)
    return Run.objects.filter(pk__in=[entry.data["run"] for entry in taken]).first()


def _move(path: Path, folder: str, reason: str) -> None:
    """Move a file into a folder beside it, under a free name, and write the reason beside it."""
    target = path.parent / folder
    try:
        target.mkdir(exist_ok=True)
        free = target / path.name
        number = 1
        while free.exists():
            number += 1
            free = target / f"{path.stem}-{number}{path.suffix}"
        path.rename(free)
        if reason:
            free.with_name(f"{free.name}.reason.txt").write_text(reason + "\n")
    except FileNotFoundError:
        return  # another process moved it
    except OSError as error:
        logger.error("WATCH_FOLDER: %s cannot be moved to %s: %s", path, target, error.strerror)
    if reason:
        logger.warning("WATCH_FOLDER: %s: %s", path, reason)


def _folders(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.is_dir() and not path.is_symlink()]


def _files(folder: Path) -> Iterator[Path]:
    """Yield files that are complete. Links are left: they could lead to any file of this machine."""
    before = time.time() - QUIET_SECONDS
    for path in _entries(folder):
        if path.is_symlink() or not path.is_file() or path.name.endswith(ENDINGS_OF_UNFINISHED):
            continue
        if path.stat().st_mtime <= before:
            yield path


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder by name, without hidden names. A folder that cannot be read is logged."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        logger.error("WATCH_FOLDER: %s cannot be read: %s", folder, error.strerror)
        return []
