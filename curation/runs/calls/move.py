"""Old rows of ended runs go from the database to compressed files; their counts, costs and usage stay.

The texts of calls go first: they are most of the bytes, and are kept so that the same request is answered from the
record. Answers, verdicts and sessions have their own tables, so pages, exports and figures of an old run need none of
these. Items and calls follow, if nothing reads them any more: the run ended well, so that nobody resumes it, no row of
another table names them, and their stage is a `MovableStage`.
"""

import gzip
import logging
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from itertools import chain
from typing import Any
from uuid import uuid4

import orjson
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.dispatch import receiver
from django.utils import timezone
from pydantic import TypeAdapter

from curation.projects.models import Project
from curation.projects.removal.erase import pre_erase
from curation.runs.calls.totals import read_totals, totals_of, written_totals
from curation.runs.kinds import MovableStage, stages_of
from curation.runs.models import ENDED, Call, CallText, Item, Run, RunEvent, RunState
from curation.web.ids import IdList
from curation.web.text.figures import counted

logger = logging.getLogger(__name__)
# Runs of one pass, rows that are read and deleted together, and items of one file: other writers wait for its end.
RUNS, CHUNK, PART = 100, 200, 1_000
# The days that figures of usage go back. Calls stay as long.
USAGE_DAYS = 92
# `Run.moved["stages"]`, as `ItemQuerySet.by_stage`.
STAGES = TypeAdapter(list[tuple[str, str, int, datetime | None, datetime | None]])


def move_old_rows() -> int:
    """Move the texts of runs that ended longer ago than `runs.keep_texts_days` of their project, and a day later at the
    earliest the items and calls of those that ended more than `USAGE_DAYS` ago; return the number of texts and items.
    The texts of a run that went on since are moved again."""
    now, texts, items = timezone.now(), 0, 0
    for project in Project.objects.filter(archived_at=None, deleting_at=None).iterator():
        days = project.settings.runs.keep_texts_days
        if days is None:
            continue
        ended = Run.objects.of(project).filter(state__in=ENDED, finished_at__lt=now - timedelta(days=days))
        again = Q(texts_moved_at=None) | Q(texts_moved_at__lt=F("finished_at"))
        for run in ended.filter(again).order_by("finished_at")[:RUNS]:
            texts += _move_texts(run)
        # No request is answered from calls without a text, and items that were answered by them have ended by now.
        silent = ended.filter(texts_moved_at__lt=now - timedelta(days=1), texts_moved_at__gte=F("finished_at"))
        well = silent.filter(state=RunState.SUCCEEDED, items_failed=0, rows_moved_at=None)
        reused = cache(lambda project=project: _reused_calls(project))
        for run in well.filter(finished_at__lt=now - timedelta(days=USAGE_DAYS + 1)).order_by("finished_at")[:RUNS]:
            items += _move_rows(run, reused)
    if texts or items:
        logger.info("The texts of %s calls and %s items of old runs were moved to files", texts, items)
    return texts + items


def moved_lines(run: Run) -> Iterator[bytes]:
    """The moved rows of the run, as gzip of JSON lines."""
    for name in run.text_files:
        with default_storage.open(name) as file:
            yield from iter(lambda: file.read(64 * 1024), b"")


def _move_texts(run: Run) -> int:
    # Embeddings are read when the run goes on.
    kept = [stage.name for stage in stages_of(run) if getattr(stage, "reads_texts", False)]
    texts = CallText.objects.filter(call__run=run).exclude(call__item__stage__in=kept)
    named = {"content_hash": F("call__content_hash"), "model": F("call__endpoint_name")}
    moved = texts.annotate(stage=F("call__item__stage"), item=F("call__item__key"), **named)
    ids = list(texts.order_by("pk").values_list("pk", flat=True))

    def write() -> None:
        _delete(CallText.objects.all(), ids)
        if ids:
            said = f"The texts of {counted(len(ids), 'call')} were moved to a file, as the project's settings ask."
            RunEvent.objects.create(run=run, message=said)

    done = _move(run, _rows("text", moved, ids), write, texts_moved_at=timezone.now())
    return len(ids) if done else 0


def _move_rows(run: Run, reused: Callable[[], Mapping[int, Set[int]]]) -> int:
    """Move the items of the run that nothing names, with their calls. A worker that is killed leaves each file with its
    rows either moved or not."""
    stages = [stage.name for stage in stages_of(run) if isinstance(stage, MovableStage)]
    items = Item.objects.filter(run=run, stage__in=stages).order_by("pk")
    moved, last = 0, 0
    while part := list(items.filter(pk__gt=last).values_list("pk", flat=True)[:PART]):
        last = part[-1]
        named = _named(part) | _answered_others(part, reused() if run.calls else {})
        ids = [pk for pk in part if pk not in named]
        calls = list(Call.objects.filter(item__in=IdList(ids)).order_by("pk").values_list("pk", flat=True))
        if ids and not _move_part(run, ids, calls):
            return moved
        moved += len(ids)
    Run.objects.filter(pk=run.pk).update(rows_moved_at=timezone.now())
    if moved:
        said = f"{counted(moved, 'item')} with their calls were moved to a file, as the project's settings ask."
        RunEvent.objects.create(run=run, message=said)
    return moved


def _move_part(run: Run, ids: Sequence[int], calls: Sequence[int]) -> bool:
    figures = run.moved or {
        "stages": STAGES.dump_python(list(Item.objects.filter(run=run).by_stage()), mode="json"),
        "models": {},
    }
    models = {name: read_totals(totals) for name, totals in figures["models"].items()}
    for start in range(0, len(calls), CHUNK):
        for name, totals in totals_of(Call.objects.filter(pk__in=calls[start : start + CHUNK])).items():
            models.setdefault(name, Counter()).update(totals)

    def write() -> None:
        _delete(Call.objects.all(), calls)
        _delete(Item.objects.all(), ids)

    lines = chain(_rows("item", Item.objects.all(), ids), _rows("call", Call.objects.all(), calls))
    figures["models"] = {name: written_totals(totals) for name, totals in models.items()}
    done = _move(run, lines, write, moved=figures)
    run.moved = figures
    return done


def _move(run: Run, lines: Iterable[bytes], write: Callable[[], None], **changes: object) -> bool:
    """Write the lines to a file; then, in one transaction, note it with the changes of the run and delete the rows.
    Return false if the run went on, is deleted, or another worker has moved rows of it."""
    files, name = list(run.text_files), ""
    with tempfile.TemporaryFile() as file:
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            for line in lines:
                packed.write(line)
            is_empty = packed.tell() == 0
        if not is_empty:
            file.seek(0)
            name = default_storage.save(f"{_folder(run)}/{uuid4()}.jsonl.gz", File(file))
    with transaction.atomic():
        Run.objects.hold(run.pk)
        same = Run.objects.filter(pk=run.pk, state=run.state, finished_at=run.finished_at, deleting_at=None)
        moved = same.values_list("text_files", flat=True).first() == files
        if moved:
            run.text_files = [*files, name] if name else files
            same.update(text_files=run.text_files, **changes)
            write()
    if name and not moved:
        default_storage.delete(name)
    return moved


def _folder(run: Run) -> str:
    return f"calls/{run.project_id}/{run.pk}"


def _rows(kind: str, rows: QuerySet[Any], ids: Sequence[int]) -> Iterator[bytes]:
    """Yield the rows with these ids as JSON lines, which say what they are: `text`, `item` or `call`."""
    for start in range(0, len(ids), CHUNK):
        for row in rows.filter(pk__in=ids[start : start + CHUNK]).order_by("pk").values():
            yield orjson.dumps({"row": kind, **row}, default=str, option=orjson.OPT_APPEND_NEWLINE)


def _delete(rows: QuerySet[Any], ids: Sequence[int]) -> None:
    for start in range(0, len(ids), CHUNK):
        rows.filter(pk__in=ids[start : start + CHUNK]).delete()


def _named(items: Sequence[int]) -> set[int]:
    """Return those of the items that rows of other tables name, such as a verdict that names a call of the item."""
    found = set[int]()
    for model, place in ((Item, ""), (Call, "__item")):
        for relation in model._meta.related_objects:
            path = f"{relation.field.name}{place}"
            if relation.related_model is not Call:
                rows = relation.related_model._base_manager.filter(**{f"{path}__in": IdList(items)})
                found.update(rows.values_list(path, flat=True))
    return found


def _answered_others(items: Sequence[int], reused: Mapping[int, Set[int]]) -> set[int]:
    """Return those of the items one of whose calls answered another item from the record."""
    calls = Call.objects.filter(item__in=IdList(items)).values_list("pk", "item_id") if reused else ()
    return {item for call, item in calls if item is not None and reused.get(call, set()) - {item}}


def _reused_calls(project: Project) -> Mapping[int, Set[int]]:
    """Return the items that each recorded call of the project answered."""
    found = defaultdict[int, set[int]](set)
    rows = Item.objects.filter(run__project=project, run__deleting_at=None, result__has_key="reused_calls")
    for item in rows.only("result").iterator():
        for call in item.reused_calls:
            found[call].add(item.pk)
    return found


@receiver(pre_erase, sender=Run)
def delete_files(ids: Sequence[int], **kwargs: object) -> None:
    """Delete the files of the runs, and those of passes that were killed."""
    for run in Run.objects.filter(pk__in=ids):
        files = set(run.text_files)
        with suppress(FileNotFoundError):
            files.update(f"{_folder(run)}/{name}" for name in default_storage.listdir(_folder(run))[1])
        for name in files:
            default_storage.delete(name)
