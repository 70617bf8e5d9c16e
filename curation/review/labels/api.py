from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from curation.labels.models import Label
from curation.projects.access import Access, enter
from curation.projects.models import Scope
from curation.review.labels.save import save_labels, shown_value
from curation.review.schemas import seen_version
from curation.samples.list.api import enter_sample
from curation.web.http.responses import set_etag
from curation.web.lists.filters import ListParams, Moment, Words, ids_of
from curation.web.lists.keyset import KeysetPage
from curation.web.schemas import Id, Out, Page, Stamp, Strict, Username, answer


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


class LabelList(ListParams):
    """Labels that the caller may see: their own, and everybody's on samples that are decided."""

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


router = Router(tags=["labels"])
LABELS = answer("LabelsOut", data=list[LabelOut])


@router.get("/projects/{slug}/labels", response=Page[LabelOut], summary="Everybody's labels")
def list_project_labels(request: HttpRequest, slug: str, params: Query[LabelList]) -> dict[str, object]:
    """Of pending samples only your own, with any role; those of others follow when the sample is decided."""
    access = enter(request, slug, Scope.READ)
    return params.rows(access).response(lambda row: LabelOut.of(access, row))


@router.get("/samples/{sample_id}/labels", response=LABELS, summary="The current labels of a sample")
def list_labels(request: HttpRequest, sample_id: str) -> dict[str, object]:
    """While the sample is pending, your own."""
    access, sample = enter_sample(request, sample_id, Scope.READ)
    rows = Label.objects.filter(sample=sample, current=True, value__isnull=False).visible_to(access.user.pk)
    rows = rows.select_related("question", "author", "sample").order_by("id")
    return {"data": [LabelOut.of(access, row) for row in rows]}


@router.post("/samples/{sample_id}/labels", response={201: LABELS}, summary="Answer questions about a sample")
def post_labels(
    request: HttpRequest, response: HttpResponse, sample_id: str, body: LabelsIn
) -> Status[dict[str, object]]:
    """Answers with your current labels on it. Needs no lease. A stale `If-Match` or `version`: 412."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    version = seen_version(request, sample, body.version)
    rows = save_labels(access=access, sample_id=sample.pk, given=body.labels, version=version)
    set_etag(response, sample.version)
    return Status(201, {"data": [LabelOut.of(access, row) for row in rows]})
