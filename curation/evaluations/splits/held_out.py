"""Uploaded splits as held-out sets that exports are compared with."""

from functools import partial

from curation.evaluations.models import Split
from curation.evaluations.splits.forms import split_choices
from curation.evaluations.splits.origins import made_of, rows_of_split
from curation.exports.hygiene.held_out import FIELD, HeldOut, HeldOutSource, register_held_out
from curation.projects.models import Project
from curation.web.ids import find_param


def find_split(project: Project, pk: str) -> HeldOut:
    split = find_param(Split.objects.of(project), pk, "split", FIELD)
    return HeldOut(
        f"split/{pk}",
        f"split {split.name}"[:100],
        lambda: (row.compared() for row in rows_of_split(split)),
        partial(made_of, split),
    )


def choices(project: Project) -> list[tuple[str, str]]:
    return [(f"split/{pk}", f"split {label}") for pk, label in split_choices(project)]


register_held_out("split", HeldOutSource(find_split, choices))
