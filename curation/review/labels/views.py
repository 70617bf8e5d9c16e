"""Answer the questions on the page of a sample."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.html import conditional_escape
from ninja import Query, Router, Status
from pydantic import Field

from curation.labels.models import Label, Question, QuestionKind
from curation.labels.values import BadValue
from curation.projects.access import Access, enter, project_page
from curation.projects.models import Scope
from curation.review.labels.save import field_of, save_labels, shown_value
from curation.review.pages.views import sample_of
from curation.review.queue.lease import own_lease
from curation.review.schemas import seen_version
from curation.review.workspace.detail import detail_of
from curation.review.workspace.labels import NEWEST, label_panel, text_of, turn_texts
from curation.review.workspace.navigation import sample_url
from curation.review.workspace.responses import announce
from curation.review.workspace.workspace import answers_shown
from curation.samples.list.api import enter_sample
from curation.samples.models import Sample, SampleKind
from curation.web.http.middleware import posted_version
from curation.web.http.responses import set_etag
from curation.web.ids import number
from curation.web.lists.filters import ListParams, Moment, Words, ids_of
from curation.web.lists.keyset import KeysetPage
from curation.web.problems import FieldError, Invalid, Problem
from curation.web.schemas import Id, Out, Page, Stamp, StrictModel, Username, answer


@project_page(Scope.REVIEW, "POST")
def sample_labels(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """Save the dialog; the answer is the panel, or the reason of a refusal for the open dialog."""
    sample, is_htmx = sample_of(access, pk), bool(request.headers.get("HX-Request"))
    try:
        try:
            given = _given(access, sample, request.POST)
        except BadValue as wrong:
            raise Invalid(f"The form is incomplete: it {wrong}. Open the sample again.") from None
        save_labels(access=access, sample_id=pk, given=given, version=posted_version(request))
    except Problem as problem:
        if not is_htmx:
            raise
        refused = HttpResponse(conditional_escape(problem.detail), status=422)
        refused["HX-Retarget"], refused["HX-Reswap"] = "#labels-error", "innerHTML"
        return refused
    if not is_htmx:
        return HttpResponseRedirect(sample_url(access.project.slug, pk))
    found = detail_of(sample, access.user.pk) if sample.kind == SampleKind.TURN else None
    places = [place for place, _, _ in answers_shown(access, sample, found)] if found else []
    questions = list(Question.objects.asked(access.project, sample.kind))
    panel = label_panel(access, sample, questions, own_lease(sample, access), places) if questions else None
    context = {"labels": panel, "sample": sample, "project": access.project}
    return announce(render(request, "review/workspace/_labels.html", context), f"Saved the labels of sample {pk}.")


def _given(access: Access, sample: Sample, sent: QueryDict) -> dict[str, object]:
    """The answers of the form, one for each question that it shows."""
    given: dict[str, object] = {}
    marks = False
    for question in Question.objects.asked(access.project, sample.kind):
        field = f"label-{question.name}"
        if f"{field}-shown" not in sent:
            continue
        value = sent.get(field, "").strip()
        match question.kind:
            case QuestionKind.RATING:
                given[question.name] = number(value) if value else None
            case QuestionKind.MULTI_LABEL:
                given[question.name] = sent.getlist(field) or None
            case QuestionKind.SPAN:
                spans = _kept_spans(access, sample, question, sent)
                if value:
                    marks = True
                    spans.append({**_quoted(access, sample, sent), "label": value})
                given[question.name] = spans or None
            case _:
                given[question.name] = value or None
    if sent.get("quote", "").strip() and not sent.get("quote_nth") and not marks:
        raise Invalid("Choose a label for the words that you typed.", errors=[FieldError("quote", "has no label")])
    return given


def _kept_spans(access: Access, sample: Sample, question: Question, sent: QueryDict) -> list[dict[str, object]]:
    """The spans that stay ticked. They are named by their place in the answer that the form showed."""
    rows = Label.objects.filter(sample=sample, question=question, author=access.user, current=True)
    own = rows.select_related("question", "sample").first()
    shown = sent.get(f"label-{question.name}-shown", "")
    if shown != (str(own.pk) if own and own.value is not None else ""):
        raise Invalid("Your labels changed in another window. Open the sample again before you answer.")
    kept = {number(place) for place in sent.getlist(f"label-{question.name}-keep")}
    spans = shown_value(access, own) if own and own.value is not None else []
    return [dict(span) for place, span in enumerate(spans) if place in kept] if isinstance(spans, list) else []


def _quoted(access: Access, sample: Sample, sent: QueryDict) -> dict[str, object]:
    """The span of the words that were selected or typed. `quote_nth` says which of several places was selected."""
    quote = sent.get("quote", "").replace("\r\n", "\n")
    if not quote.strip():
        raise Invalid("Select words in the text, or type them, to mark them.", errors=[FieldError("quote", "is empty")])
    if sample.kind == SampleKind.TRAJECTORY:
        texts: dict[str, tuple[str, str | None]] = {
            f"turn:{index}": (text, None) for index, text in enumerate(turn_texts(sample))
        }
    else:
        place = sent.get("quote_in") or "challenger"
        found = text_of(sample, field_of(access, sample, place), NEWEST, access.user.pk)
        texts = {place: found} if found else {}
    places: list[dict[str, object]] = [
        {"field": field, "revision": revision, "start": start, "end": start + len(quote)}
        for field, (text, revision) in texts.items()
        for start in _places_of(quote, text)
    ]
    nth = number(sent.get("quote_nth", "")) or 0
    if not places:
        raise Invalid(
            "The text does not have these words in one piece. Select a part that does not cross a code block's edge."
        )
    if len(places) > 1 and not 0 < nth <= len(places):
        raise Invalid(f"The text has these words {len(places)} times. Select them there, or add the words beside them.")
    return places[nth - 1 if len(places) > 1 else 0]


def _places_of(quote: str, text: str) -> list[int]:
    places, start = [], text.find(quote)
    while start >= 0:
        places.append(start)
        start = text.find(quote, start + 1)
    return places


class LabelsIn(StrictModel):
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
