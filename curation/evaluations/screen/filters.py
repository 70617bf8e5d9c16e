from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from django.db.models import QuerySet
from pydantic import Field

from curation.evaluations.models import AnswerMark, Evaluation, ScreenedAnswer, ScreenedQuerySet
from curation.projects.access import Access
from curation.samples.blind import without_pending
from curation.web.ids import id_number
from curation.web.lists.filters import ArchivableList, ListParams, Words, named_list, one_of


@named_list("evaluations", page="evaluation-list")
class EvaluationList(ArchivableList):
    archived_column = "run__archived_at"

    split: str | None = Field(None, description="Only evaluations of this split.")

    def rows(self, access: Access) -> QuerySet[Evaluation]:
        """The figures of an evaluation count how its episodes ended: those who review blind get none with a pending
        sample."""
        rows = self.narrow(Evaluation.objects.of(access.project))
        rows = without_pending(access, rows, "episodes__trajectory__sample")
        return rows if self.split is None else rows.filter(split=id_number(self.split) or 0)


class AnswerList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("row", "-row")
    # By the rows of the file, not by the order of the answers.
    sort_columns: ClassVar[Mapping[str, str]] = {"row": "row_id"}
    lookups: ClassVar[Mapping[str, str]] = {
        **{"model": "by__name", "mark": "mark", "tier": "row__tier", "source": "row__source"}
    }

    model: Words = ()
    mark: Annotated[Words, one_of(AnswerMark.values)] = ()
    tier: Words = ()
    source: Words = ()
    row: str | None = Field(None, description="Id of a row of the split: what every model said to it.")
    errors: bool = Field(False, description="Only calls that failed.")
    cut: bool = Field(False, description="Only answers that the token limit ended.")
    disagreements: bool = Field(False, description="Only rows on which the models got different marks.")

    def rows(self, evaluation: Evaluation) -> ScreenedQuerySet:
        rows = self.narrow(ScreenedAnswer.objects.filter(evaluation=evaluation))
        if self.row is not None:
            rows = rows.filter(row=id_number(self.row) or 0)
        if self.errors:
            rows = rows.filter(failed=True)
        if self.cut:
            rows = rows.filter(cut=True)
        return rows.disagreeing() if self.disagreements else rows
