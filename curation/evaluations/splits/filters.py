"""The lists of splits, their rows and their contaminated rows: what each can be filtered and sorted by."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from django.db.models import QuerySet

from curation.evaluations.models import ContaminatedRow, ContaminationCheck, Split, SplitRow
from curation.web.lists.filters import Words, one_of
from curation.web.lists.params import ArchivableList, ListParams
from judging.commands.contamination import Level

LEVELS = [level.value for level in Level]


class SplitList(ArchivableList):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")


class SplitRowList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    lookups: ClassVar[Mapping[str, str]] = {"tier": "tier", "source": "source"}

    tier: Words = ()
    source: Words = ()

    def rows(self, split: Split) -> QuerySet[SplitRow]:
        return self.narrow(SplitRow.objects.filter(split=split).select_related("text"))


class SplitPageParams(SplitRowList):
    """The rows on the page of a split, which can also be filtered by their level of contamination."""

    level: Annotated[Words, one_of([*LEVELS, "any"])] = ()

    def rows_of_check(self, split: Split, check: ContaminationCheck | None) -> QuerySet[SplitRow]:
        rows = self.rows(split)
        if not self.level:
            return rows
        found = ContaminatedRow.objects.filter(check_of=check).values_list("row_id", "levels")
        for group in self.level:
            rows = rows.filter(pk__in=[pk for pk, levels in found if {"any", *levels}.intersection(group)])
        return rows


class ContaminatedList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    lookups: ClassVar[Mapping[str, str]] = {"level": "level"}

    level: Annotated[Words, one_of(LEVELS)] = ()
