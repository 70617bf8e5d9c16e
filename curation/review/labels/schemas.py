from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from ninja import Schema
from pydantic import Field

from curation.labels.models import Label
from curation.projects.access import Access
from curation.review.labels.save import shown_value
from curation.web.lists.filters import Moment, Words, ids_of
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.params import ListParams
from curation.web.schemas import Id, Out, Stamp, Strict, Username


class LabelsIn(Strict):
    labels: dict[str, Any] = Field(
        examples=[{}],
        description="Answers by the questions' names: a choice; a list of choices; a number; a text; or spans "
        '`[{"field": "challenger", "start": 0, "end": 12, "label": "wrong file"}]`. `start` and `end` are code points; '
        "`field` is challenger, king, left, right or turn:N. A span may name its `revision`, null for the text as "
        "recorded; without it, it is the newest. null takes an answer back.",
    )
    version: int | None = Field(None, description="The sample's version that was seen; the same as `If-Match`.")


class LabelOut(Out):
    """One person's answer. A label that is not `current` was replaced by a later one; a `value` of null took the answer
    back. While you are blind, spans name `left` and `right`."""

    id: Id = Field(examples=["51"])
    sample: Id = Field(validation_alias="sample_id", examples=["4711"])
    question: str = Field(validation_alias="question.name", examples=["error_type"])
    kind: str = Field(validation_alias="question.kind", examples=["label"])
    value: Any = Field(examples=["wrong file"])
    reviewer: Username = Field(validation_alias="author", examples=["demo"])
    version: int = Field(description="The sample's version that was labelled", examples=[1])
    current: bool = Field(examples=[True])
    created_at: Stamp = Field(examples=["2026-03-04T05:06:07Z"])

    @classmethod
    def of(cls, access: Access, row: Label) -> "LabelOut":
        return cls.model_validate(row).model_copy(update={"value": shown_value(access, row)})


class LabelsOut(Schema):
    data: list[LabelOut]


class LabelList(ListParams):
    """Labels that the caller may see: their own, and everybody's on samples that are decided."""

    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    lookups: ClassVar[Mapping[str, str]] = {
        "sample": "sample_id",
        "question": "question__name",
        "reviewer": "author__username",
        "created_after": "created_at__gte",
        "created_before": "created_at__lt",
    }

    sample: Annotated[Words, ids_of("sample")] = ()
    question: Words = Field(default=(), description="Names of questions.")
    reviewer: Words = Field(default=(), description="Usernames.")
    current: bool | None = Field(default=None, description="Only the labels in force (true), or the replaced (false).")
    created_after: Moment | None = Field(default=None, description="From this moment on.")
    created_before: Moment | None = Field(default=None, description="Before this moment.")

    def rows(self, access: Access) -> KeysetPage[Label]:
        rows = self.narrow(Label.objects.filter(question__project=access.project).visible_to(access.user.pk))
        if self.current is not None:
            rows = rows.filter(current=self.current)
        return self.page(rows.select_related("question", "author", "sample"))
