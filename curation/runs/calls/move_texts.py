"""Old texts of model calls go from the database to a compressed file; the calls, their counts and costs stay.

A text is kept so that the same request is answered from the record. Answers, verdicts and sessions have their own
tables, so pages, exports and figures of an old run need none of these.
"""

import gzip
import logging
import tempfile
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import IO

import orjson
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.dispatch import receiver
from django.utils import timezone

from curation.projects.models import Project
from curation.projects.removal.erase import pre_erase
from curation.runs.kinds import stages_of
from curation.runs.models import ENDED, CallText, Run, RunEvent
from curation.web.text.figures import counted

logger = logging.getLogger(__name__)
# Runs of one pass, and calls that are read and deleted together.
RUNS, CHUNK = 100, 200


def move_old_texts() -> int:
    """Move the texts of runs that ended longer ago than `runs.keep_texts_days` of their project; return their number.
    A run that went on since is moved again."""
    moved = 0
    for project in Project.objects.filter(archived_at=None, deleting_at=None).iterator():
        days = project.settings.runs.keep_texts_days
        if days is None:
            continue
        ended = Run.objects.of(project).filter(state__in=ENDED, finished_at__lt=timezone.now() - timedelta(days=days))
        again = Q(texts_moved_at=None) | Q(texts_moved_at__lt=F("finished_at"))
        for run in ended.filter(again).order_by("finished_at")[:RUNS]:
            moved += _move(run)
    if moved:
        logger.info("The texts of %s calls of old runs were moved to files", moved)
    return moved


def texts_of(run: Run) -> Iterator[bytes]:
    """The moved texts of the run, as gzip of JSON lines."""
    for name in run.text_files:
        with default_storage.open(name) as file:
            yield from iter(lambda: file.read(64 * 1024), b"")


def _move(run: Run) -> int:
    # Embeddings are read when the run goes on.
    kept = [stage.name for stage in stages_of(run) if getattr(stage, "reads_texts", False)]
    texts = CallText.objects.filter(call__run=run).exclude(call__item__stage__in=kept).order_by("call_id")
    moved, files = list[int](), list(run.text_files)
    with tempfile.TemporaryFile() as file:
        for chunk in _chunks(texts.select_related("call__item")):
            _write(file, chunk)
            moved += [text.call_id for text in chunk]
        if moved:
            name = f"calls/{run.project_id}/{run.pk}-{len(files) + 1}.jsonl.gz"
            default_storage.delete(name)  # of a pass that was killed
            file.seek(0)
            files.append(default_storage.save(name, File(file)))
    with transaction.atomic():
        Run.objects.hold(run.pk)
        same = Run.objects.filter(pk=run.pk, state=run.state, finished_at=run.finished_at, deleting_at=None)
        if not same.update(texts_moved_at=timezone.now(), text_files=files):
            return 0  # it went on, or is deleted
        for start in range(0, len(moved), CHUNK):
            CallText.objects.filter(call__in=moved[start : start + CHUNK]).delete()
        if moved:
            said = f"The texts of {counted(len(moved), 'call')} were moved to a file, as the project's settings ask."
            RunEvent.objects.create(run=run, message=said)
    return len(moved)


def _chunks(texts: QuerySet[CallText]) -> Iterator[Sequence[CallText]]:
    last = 0
    while chunk := list(texts.filter(call_id__gt=last)[:CHUNK]):
        yield chunk
        last = chunk[-1].call_id


def _write(file: IO[bytes], texts: Sequence[CallText]) -> None:
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        for text in texts:
            call = text.call
            line = {
                "call": str(call.pk),
                "model": call.endpoint_name,
                "stage": call.item.stage if call.item else None,
                "item": call.item.key if call.item else None,
                "content_hash": call.content_hash,
                "text": text.text,
                "thinking": text.thinking,
                "tool_calls": text.tool_calls,
                "tokens": text.tokens,
            }
            packed.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


@receiver(pre_erase, sender=Run)
def delete_files(ids: Sequence[int], **kwargs: object) -> None:
    for files in Run.objects.filter(pk__in=ids).values_list("text_files", flat=True):
        for name in files:
            default_storage.delete(name)
