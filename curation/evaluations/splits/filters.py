from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from django.db.models import QuerySet
from pydantic import Field

from curation.evaluations.models import ContaminatedRow, ContaminationCheck, Split, SplitRow
from curation.web.ids import IdList
from curation.web.lists.filters import ArchivableList, ListParams, Words, named_list, one_of
from judging.contamination.levels import Level

LEVELS = [level.value for level in Level]


@named_list("splits", page="split-list")
class SplitList(ArchivableList):
    pass


class SplitRowList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    lookups: ClassVar[Mapping[str, str]] = {"tier": "tier", "source": "source"}

    tier: Words = ()
    source: Words = ()

    def rows(self, split: Split) -> QuerySet[SplitRow]:
        return self.narrow(SplitRow.objects.filter(split=split).select_related("text"))


class SplitPageParams(SplitRowList):
    level: Annotated[Words, one_of([*LEVELS, "any"])] = ()

    def rows_of_check(self, split: Split, check: ContaminationCheck | None) -> QuerySet[SplitRow]:
        rows = self.rows(split)
        if not self.level:
            return rows
        for group in self.level:
            rows = rows.filter(pk__in=IdList(rows_at(check, group)))
        return rows


class ContaminatedRowList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    lookups: ClassVar[Mapping[str, str]] = {"level": "level"}

    level: Annotated[Words, one_of(LEVELS)] = Field((), description="By the strongest level.")
    levels: Annotated[Words, one_of([*LEVELS, "any"])] = Field(
        (), description="By all levels; `any` is every contaminated row."
    )

    def rows_of_check(self, check: ContaminationCheck | None) -> QuerySet[ContaminatedRow]:
        rows = self.narrow(ContaminatedRow.objects.filter(check_of=check).select_related("row"))
        for group in self.levels:
            rows = rows.filter(row__in=IdList(rows_at(check, group)))
        return rows


def rows_at(check: ContaminationCheck | None, wanted: Sequence[str]) -> list[int]:
    """Return the rows of a check with one of these levels; `any` is every contaminated row."""
    found = ContaminatedRow.objects.filter(check_of=check).values_list("row_id", "levels")
    every = {level.value for level in Level if level.contaminates} if "any" in wanted else set()
    return [pk for pk, levels in found if not (every | set(wanted)).isdisjoint(levels)]
