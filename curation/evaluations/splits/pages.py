"""Rows of a split as its page shows them, with the training rows that match."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.evaluations.models import ContaminatedRow, ContaminationCheck, SplitRow
from curation.web.text.markup import visible
from judging.contamination.levels import Level


@dataclass(frozen=True, slots=True)
class MatchLine:
    """A training row that matches, with its text."""

    number: int
    levels: str
    prompt: SafeString
    answer: SafeString


@dataclass(frozen=True, slots=True)
class SplitRowLine:
    row: SplitRow
    expected: SafeString
    prompt: SafeString
    level: str
    matches: tuple[MatchLine, ...]


def row_lines(rows: list[SplitRow], check: ContaminationCheck | None) -> list[SplitRowLine]:
    found = ContaminatedRow.objects.filter(check_of=check, row__in=[row.pk for row in rows])
    by_row = {entry.row_id: entry for entry in found}
    return [_line(row, by_row.get(row.pk)) for row in rows]


def _line(row: SplitRow, found: ContaminatedRow | None) -> SplitRowLine:
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
    return SplitRowLine(row, visible(row.text.expected), visible(prompt), found.level if found else "", matches)
