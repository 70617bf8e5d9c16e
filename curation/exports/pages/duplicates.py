"""The duplicates of an export: each sample that is left out with the one that is exported in its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.db.models import QuerySet
from ninja import Schema
from pydantic import Field

from curation.exports.models import Export, FrozenRow
from curation.samples.models import Sample
from curation.web.lists.id_list import IdList
from curation.web.lists.params import ListParams


class DuplicateList(ListParams):
    """Group by group: all duplicates of one kept sample follow each other."""

    sorts: ClassVar[Sequence[str]] = ("kept",)
    sort_columns: ClassVar[Mapping[str, str]] = {"kept": "duplicate_of"}


class DuplicateOut(Schema):
    sample: str = Field(examples=["17"], description="The sample that is left out.")
    kept: str = Field(examples=["12"], description="The sample that is exported in its place.")


@dataclass(frozen=True, slots=True)
class DuplicateLine:
    """Two samples as they are now; None for one that was deleted since."""

    row: FrozenRow
    sample: Sample | None
    kept: Sample | None


def duplicates_of(export: Export) -> QuerySet[FrozenRow]:
    return FrozenRow.objects.filter(export=export, duplicate_of__isnull=False)


def duplicate_out(row: FrozenRow) -> dict[str, object]:
    return {"sample": str(row.sample_id), "kept": str(row.duplicate_of)}


def duplicate_lines(rows: Sequence[FrozenRow]) -> list[DuplicateLine]:
    ids = [pk for row in rows for pk in (row.sample_id, row.duplicate_of) if pk is not None]
    found = {sample.pk: sample for sample in Sample.objects.filter(pk__in=IdList(ids))}
    return [DuplicateLine(row, found.get(row.sample_id), found.get(row.duplicate_of or 0)) for row in rows]
