"""Rows of a split as its page shows them, with what of each stands in training data."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.safestring import SafeString

from curation.evaluations.models import ContaminatedRow, ContaminationCheck, Split, SplitRow
from curation.web.lists.keyset import Page, paginate
from curation.web.lists.params import one_of
from curation.web.text.markup import visible
from judging.commands.contamination import Level


@dataclass(frozen=True, slots=True)
class MatchLine:
    """A training row that matches, with its text."""

    number: int
    levels: str
    prompt: SafeString
    answer: SafeString


@dataclass(frozen=True, slots=True)
class RowLine:
    row: SplitRow
    expected: SafeString
    prompt: SafeString
    level: str
    matches: tuple[MatchLine, ...]


@dataclass(frozen=True, slots=True)
class RowPage:
    rows: list[RowLine]
    next_cursor: str | None


def split_rows(
    split: Split, check: ContaminationCheck | None, *, level: str, cursor: str | None, limit: int
) -> RowPage:
    """A page of rows in file order; `level` narrows it to rows with that level of contamination."""
    rows: QuerySet[SplitRow] = SplitRow.objects.filter(split=split).select_related("text")
    if level:
        one_of("level", [level], [*(found.value for found in Level), "any"])
        stained = ContaminatedRow.objects.filter(check_of=check).values_list("row_id", "levels")
        rows = rows.filter(pk__in=[pk for pk, levels in stained if level == "any" or level in levels])
    page: Page[SplitRow] = paginate(rows, sort="id", cursor=cursor, limit=limit)
    found = ContaminatedRow.objects.filter(check_of=check, row__in=[row.pk for row in page.rows])
    by_row = {entry.row_id: entry for entry in found}
    return RowPage([_line(row, by_row.get(row.pk)) for row in page.rows], page.next_cursor)


def _line(row: SplitRow, found: ContaminatedRow | None) -> RowLine:
    prompt = "\n\n".join(str(message.get("content") or "") for message in row.text.messages[-1:])
    matches = tuple(
        MatchLine(
            match["training_row"],
            ", ".join(Level(level).sentence for level in match["levels"]),
            visible(match["prompt"]),
            visible(match["answer"]),
        )
        for match in (found.matches if found else [])
    )
    return RowLine(row, visible(row.text.expected), visible(prompt), found.level if found else "", matches)
