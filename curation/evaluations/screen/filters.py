"""The log of an evaluation's answers: which rows a list or a page asks for."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from curation.evaluations.models import Evaluation, Mark, Screened, ScreenedQuerySet
from curation.web.lists.params import ListParams, one_of, words


class CallListParams(ListParams):
    """Comma list = OR, repeated parameters = AND."""

    sorts: ClassVar[Sequence[str]] = ("row", "-row")

    model: list[str] = []
    mark: list[str] = []
    tier: list[str] = []
    source: list[str] = []
    row: str | None = Field(None, description="Id of a row of the split: what every model said to it.")
    errors: bool = Field(False, description="Only calls that failed.")
    cut: bool = Field(False, description="Only answers that the token limit ended.")
    disagreements: bool = Field(False, description="Only rows on which the models got different marks.")

    def order(self) -> str:
        """By the rows of the file, whatever the order in which their answers came."""
        return super().order().replace("row", "row_id")

    def apply(self, evaluation: Evaluation) -> ScreenedQuerySet:
        rows = Screened.objects.filter(evaluation=evaluation)
        for group in words(self.model):
            rows = rows.filter(by__name__in=group)
        for group in words(self.mark):
            rows = rows.filter(mark__in=one_of("mark", group, Mark.values))
        for group in words(self.tier):
            rows = rows.filter(row__tier__in=group)
        for group in words(self.source):
            rows = rows.filter(row__source__in=group)
        if self.row is not None:
            rows = rows.filter(row_id=int(self.row)) if _is_id(self.row) else rows.none()
        if self.errors:
            rows = rows.filter(failed=True)
        if self.cut:
            rows = rows.filter(cut=True)
        return rows.disagreeing() if self.disagreements else rows


def _is_id(given: str) -> bool:
    return given.isascii() and given.isdigit() and len(given) < 19
