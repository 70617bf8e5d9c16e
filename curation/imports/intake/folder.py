"""Take files from the folder `WATCH_FOLDER`: `PROJECT/file` has turns, `PROJECT/KIND/file` rows of that kind.

A file is taken when two sweeps, `QUIET_SECONDS` or more apart, see the same file. It is copied into storage, an import
is launched, and it is moved to `done/` beside it, or to `failed/` with the reason in a text file. Its content is
recorded in the audit log with the launch: if the process dies before the move, the file is moved later, and not
imported again. A file in `done/` that somebody goes on writing to is imported again, where it is.
"""

import hashlib
import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings
from django.core.cache import cache
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction

from curation.imports.kinds import ImportParams
from curation.imports.row_kinds import import_kind
from curation.imports.sources.open import open_stored
from curation.imports.sources.rows import SourceError
from curation.imports.sources.stored import hold_uploads, store_upload
from curation.projects.audit import record
from curation.projects.models import AuditEntry, Project
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.web.problems import Problem

logger = logging.getLogger(__name__)

QUIET_SECONDS = 5.0
# How long a sweep is remembered, and how long after its last change a file in `done/` is looked at.
DAY = 24 * 3600
TAKEN = "intake.file"
DONE, FAILED = "done", "failed"
REASON = ".reason.txt"
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
            found = [_take(project, kind, path, state) for path, state in _quiet(_files(at))]
            found += [_take_grown(project, kind, path, state) for path, state in _quiet(_files(at / DONE, since=DAY))]
            runs += [run for run in found if run]
    return runs


@dataclass(frozen=True, slots=True)
class State:
    """What says whether somebody has written to a file."""

    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, found: os.stat_result) -> "State":
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


def _take(project: Project, kind: str, path: Path, seen: State) -> Run | None:
    """Import one file. None if it is not as it was seen, if its content was imported before, or if it cannot be
    imported: then the reason is beside it."""
    try:
        import_kind(kind)
        with path.open("rb") as file:
            upload = store_upload(project=project, file=File(file), name=path.name)
            if State.of(os.fstat(file.fileno())) != seen:
                default_storage.delete(upload)
                return None
        with open_stored(upload) as source:
            digest = source.digest
        params = ImportParams(kind=kind, upload=upload, name=path.name[-180:]).model_dump()
        with transaction.atomic():
            hold_uploads(project.pk)  # one process at a time launches for a project
            before = _run_of(project, kind, digest)
            run = before or launch(project=project, kind="import", params=params, user=None)
            data = {"sha256": digest, "kind": kind, "run": run.pk, **asdict(seen)}
            if not AuditEntry.objects.filter(project=project, action=TAKEN, data=data).exists():
                record(actor=None, project=project, action=TAKEN, subject=path.name, data=data)
    except (SourceError, Problem) as refused:
        _move(path, FAILED, refused.detail if isinstance(refused, Problem) else str(refused))
        return None
    except FileNotFoundError:  # another process took it
        return None
    _move(path, DONE, f"Run {before.pk} has imported this content." if before else "")
    return None if before else run


def _take_grown(project: Project, kind: str, path: Path, seen: State) -> Run | None:
    """Import a file in `done/` again if it has changed since it was taken."""
    taken = AuditEntry.objects.filter(project=project, action=TAKEN, data__kind=kind, data__inode=seen.inode)
    last = taken.order_by("-id").first()
    run = None
    if last is not None and (last.data["size"], last.data["modified"]) != (seen.size, seen.modified):
        run = _take(project, kind, path, seen)
    if run is not None and last is not None:
        _explain(path, f"The file was written to after run {last.data['run']} had imported it. Run {run.pk} reads all.")
    cache.set(_key(path), (seen, float("inf")), DAY)
    return run


def _run_of(project: Project, kind: str, digest: str) -> Run | None:
    """Return the run that imported this content from the folder, unless it is deleted."""
    taken = AuditEntry.objects.filter(project=project, action=TAKEN, data__sha256=digest, data__kind=kind)
    return Run.objects.filter(pk__in=[entry.data["run"] for entry in taken]).first()


def _move(path: Path, folder: str, reason: str) -> None:
    """Move a file into a folder beside it, under a free name, and write the reason beside it. One in `done/` stays."""
    if path.parent.name == DONE:
        if folder == FAILED:
            _explain(path, f"The file was written to after it had been imported, and cannot be read again. {reason}")
        return
    target = path.parent / folder
    try:
        target.mkdir(exist_ok=True)
        free = target / path.name
        number = 1
        while free.exists():
            number += 1
            free = target / f"{path.stem}-{number}{path.suffix}"
        path.rename(free)
    except FileNotFoundError:
        return  # another process moved it
    except OSError as error:
        logger.error("WATCH_FOLDER: %s cannot be moved to %s: %s", path, target, error.strerror)
        free = path
    if reason:
        _explain(free, reason)


def _explain(path: Path, reason: str) -> None:
    logger.warning("WATCH_FOLDER: %s: %s", path, reason)
    try:
        path.with_name(f"{path.name}{REASON}").write_text(reason + "\n")
    except OSError as error:
        logger.error("WATCH_FOLDER: the reason beside %s cannot be written: %s", path, error.strerror)


def _folders(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.is_dir() and not path.is_symlink()]


def _files(folder: Path, *, since: float | None = None) -> Iterator[Path]:
    """Yield files that may be imported, only those changed in the last `since` seconds. Links are left: they could lead
    to any file of this machine."""
    for path in _entries(folder) if folder.is_dir() else ():
        if path.is_symlink() or not path.is_file() or path.name.endswith((*ENDINGS_OF_UNFINISHED, REASON)):
            continue
        if since is None or path.stat().st_mtime > time.time() - since:
            yield path


def _quiet(paths: Iterable[Path]) -> Iterator[tuple[Path, State]]:
    """Yield the files that a sweep `QUIET_SECONDS` or more ago saw as they are now."""
    keys = {_key(path): path for path in paths}
    known = cache.get_many(keys)
    for key, path in keys.items():
        try:
            state = State.of(path.stat())
        except FileNotFoundError:  # another process took it
            continue
        before, since = known.get(key, (None, 0.0))
        if before != state:
            cache.set(key, (state, time.time()), DAY)
        elif time.time() - since >= QUIET_SECONDS:
            yield path, state


def _key(path: Path) -> str:
    return f"watched:{hashlib.sha256(os.fsencode(path)).hexdigest()}"


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder by name, without hidden names. A folder that cannot be read is logged."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        logger.error("WATCH_FOLDER: %s cannot be read: %s", folder, error.strerror)
        return []
