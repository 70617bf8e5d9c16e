"""The samples that hygiene keeps out of an export: duplicates, each with the one that is exported in its place, and
contaminated samples, each with the held-out row that it contains.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from django.db.models import QuerySet
from pydantic import Field

from curation.exports.hygiene.contamination import ContaminatedSampleOut
from curation.exports.models import ContaminatedSample, Export, FrozenRow
from curation.samples.models import Sample
from curation.web.ids import IdList
from curation.web.lists.filters import ListParams
from curation.web.schemas import Id, Out


class DuplicateList(ListParams):
    """Group by group: all duplicates of one kept sample follow each other."""

    sorts: ClassVar[Sequence[str]] = ("kept",)
    sort_columns: ClassVar[Mapping[str, str]] = {"kept": "duplicate_of"}


class DuplicateOut(Out):
    sample: Id = Field(validation_alias="sample_id", examples=["17"], description="The sample that is left out.")
    kept: Id = Field(
        validation_alias="duplicate_of", examples=["12"], description="The sample that is exported in its place."
    )


def duplicates_of(export: Export) -> QuerySet[FrozenRow]:
    return FrozenRow.objects.filter(export=export, duplicate_of__isnull=False)


def duplicate_lines(rows: Sequence[FrozenRow]) -> list[tuple[FrozenRow, Sample | None, Sample | None]]:
    """Return each row with its sample and the kept one as they are now; None for one that was deleted since."""
    ids = [pk for row in rows for pk in (row.sample_id, row.duplicate_of) if pk is not None]
    found = {sample.pk: sample for sample in Sample.objects.filter(pk__in=IdList(ids))}
    return [(row, found.get(row.sample_id), found.get(row.duplicate_of or 0)) for row in rows]


class ContaminatedSampleList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("sample",)
    sort_columns: ClassVar[Mapping[str, str]] = {"sample": "sample_id"}


def labels_of(export: Export) -> dict[str, str]:
    """Return the label of each held-out set of an export, as it was called then."""
    found = export.plan.get("contamination") or {}
    return {one["name"]: one["label"] for one in found.get("held_out", ())}


def line_of_row(row: ContaminatedSample, labels: Mapping[str, str]) -> ContaminatedSampleOut:
    label = labels.get(row.held_out, row.held_out)
    return ContaminatedSampleOut(str(row.sample_id), row.held_out, label, row.row, row.levels, row.prompt, row.answer)
