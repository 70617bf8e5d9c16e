"""The contaminated samples of an export or a preview: each with the held-out row that it contains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ninja import Schema
from pydantic import Field

from curation.exports.hygiene.contamination import HeldOutMatch
from curation.exports.models import ContaminatedSample
from curation.web.lists.params import ListParams
from judging.contamination.levels import Level


class ContaminatedList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("sample",)
    sort_columns: ClassVar[Mapping[str, str]] = {"sample": "sample_id"}


class ContaminatedSampleOut(Schema):
    """`prompt` is the end and `answer` the beginning of the held-out row's text."""

    sample: str = Field(examples=["17"])
    held_out: str = Field(examples=["export/12/val"])
    row: int = Field(examples=[3], description="The held-out row, counted from 1.")
    levels: list[str] = Field(examples=[["near"]], description="How it matches, the strongest way first.")
    prompt: str
    answer: str


class ContaminatedSamplePage(Schema):
    data: list[ContaminatedSampleOut]
    next_cursor: str | None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ContaminatedLine:
    sample: str
    held_out: str
    row: int
    levels: list[str]
    prompt: str
    answer: str

    @property
    def sentences(self) -> list[str]:
        return [Level(level).sentence for level in self.levels]


def line_of_row(row: ContaminatedSample) -> ContaminatedLine:
    return ContaminatedLine(str(row.sample_id), row.held_out, row.row, row.levels, row.prompt, row.answer)


def line_of_match(sample_id: int, match: HeldOutMatch) -> ContaminatedLine:
    levels = [level.value for level in match.levels]
    return ContaminatedLine(str(sample_id), match.held_out, match.row, levels, match.prompt, match.answer)


def contaminated_out(line: ContaminatedLine) -> dict[str, object]:
    return {name: getattr(line, name) for name in ContaminatedSampleOut.model_fields}
