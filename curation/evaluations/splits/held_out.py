"""Uploaded splits as held-out sets that exports are compared with."""

from collections.abc import Iterator
from functools import partial

from curation.evaluations.models import Split
from curation.evaluations.splits.forms import split_choices
from curation.evaluations.splits.origins import made_of, origins_of_split, task_origin
from curation.exports.hygiene.held_out import (
    FIELD,
    HeldOut,
    HeldOutSource,
    named_origins,
    read_messages,
    register_held_out,
)
from curation.projects.models import Project
from curation.web.ids import find_param
from judging.contamination.rows import ComparedRow

CHUNK = 500


def find_split(project: Project, pk: str) -> HeldOut:
    split = find_param(Split.objects.of(project), pk, "split", FIELD)
    made = partial(made_of, split)
    return HeldOut(f"split/{pk}", f"split {split.name}"[:100], lambda: _rows(split), made)


def _rows(split: Split) -> Iterator[ComparedRow]:
    of_lines = origins_of_split(split)
    for row in split.rows.select_related("text").order_by("number", "turn").iterator(CHUNK):
        origins = named_origins(row.text.fields) | {task_origin(split.pk, row.task)}
        if row.number < len(of_lines):
            origins |= of_lines[row.number]
        yield ComparedRow.of(read_messages(row.text.messages), row.text.expected, row.task_id, origins)


def choices(project: Project) -> list[tuple[str, str]]:
    return [(f"split/{pk}", f"split {label}") for pk, label in split_choices(project)]


register_held_out("split", HeldOutSource(find_split, choices))
