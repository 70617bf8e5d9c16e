"""Origins: the sources of rows. Rows of one origin are of the same task, also with other texts.

An origin is the name of an instance or scenario, the row of an import that a conversation came from, or a task of a
split that a live episode played.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import orjson
from django.core.files.storage import default_storage
from django.db.models import F

from curation.evaluations.models import Episode, Split
from curation.evaluations.splits.rows import EvalRow
from curation.exports.hygiene.held_out import named_origins
from curation.samples.models import Sample
from curation.web.ids import IdList

CHUNK, ROWS = 5_000, 500
Origins = frozenset[str]


def task_origin(split_id: int, task: str) -> str:
    return f"split {split_id}, task {task}"


def samples_of_file(frozen: str, format: str, split: str) -> Iterator[int]:
    """Yield the sample of each row of an export's file: `frozen.jsonl` has the rows of all files in their order."""
    with default_storage.open(frozen) as lines:
        for entry in map(orjson.loads, lines):
            for row in entry["rows"]:
                if row["format"] == format and row["split"] == split:
                    yield int(entry["sample"])


def origins_of_samples(sample_ids: Sequence[int]) -> dict[int, Origins]:
    """Return the origins of each sample that still exists. Two queries for 5,000 samples."""
    found: dict[int, set[str]] = defaultdict(set)
    every = sorted(set(sample_ids))
    for start in range(0, len(every), CHUNK):
        ids = every[start : start + CHUNK]
        rows = Sample.objects.filter(pk__in=IdList(ids)).annotate(row=F("duel__prompt__row_offset"))
        for pk, instance, source, row in rows.values_list("pk", "instance_id", "source", "row"):
            if instance or row is not None:
                found[pk].add(f"instance {instance}" if instance else f"row {source}#{row}")
        for pk, origin in _played(ids):
            found[pk].add(origin)
    return {pk: frozenset(origins) for pk, origins in found.items()}


def made_of(split: Split, sample_ids: Sequence[int]) -> dict[int, Origins]:
    """Return the tasks of a split that made some of these samples, by live episodes."""
    return {pk: frozenset({origin}) for pk, origin in _played(sample_ids, evaluation__split=split)}


def _played(sample_ids: Sequence[int], **of: Split) -> Iterator[tuple[int, str]]:
    episodes = Episode.objects.filter(trajectory__sample__in=IdList(sample_ids), evaluation__split__isnull=False, **of)
    for pk, split, key in episodes.values_list("trajectory__sample_id", "evaluation__split_id", "key"):
        yield pk, task_origin(split, key)


def origins_of_lines(frozen: str, format: str, split: str) -> list[Origins]:
    """Return the origins of each line of an export's file."""
    samples = list(samples_of_file(frozen, format, split))
    found = origins_of_samples(samples)
    return [found.get(pk, frozenset()) for pk in samples]


def origins_of_split(split: Split) -> Sequence[Origins]:
    """Return the origins of the lines of a split that was made from an export's file; nothing for an uploaded one."""
    params = split.run.params if split.run is not None and split.run.kind == "split" else {}
    frozen = str(params.get("frozen") or "")
    if not frozen or not default_storage.exists(frozen):
        return ()
    return origins_of_lines(frozen, "sft-messages", str(params["split"]))


def rows_of_split(split: Split) -> Iterator[EvalRow]:
    """All rows of a split with their texts and origins, in file order."""
    of_lines = origins_of_split(split)
    for row in split.rows.select_related("text").order_by("number", "turn").iterator(ROWS):
        origins = named_origins(row.text.fields) | {task_origin(split.pk, row.task)}
        if row.number < len(of_lines):
            origins |= of_lines[row.number]
        yield EvalRow(
            row.text.messages, row.text.expected, row.task_id, row.tier, row.source, number=row.number, origins=origins
        )
