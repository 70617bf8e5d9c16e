"""Answer the project's questions about one sample."""

from collections.abc import Mapping

from django.db import transaction

from curation.labels.models import Label, LabelValue, Question, QuestionKind
from curation.labels.values import BadValue, checked_value, span_key, words_of
from curation.projects.access import Access
from curation.review.decisions.state import refuse_errors, refuse_stale_version
from curation.review.queue.lease import LEFT, RIGHT, hides_sides, lock_sample, own_lease, place_of, shown_seats
from curation.review.workspace.labels import FIELDS, NEWEST, SIDES, text_of
from curation.samples.blind import reviews_blind
from curation.samples.models import Sample, SampleKind
from curation.web.problems import FieldError


def save_labels(
    *, access: Access, sample_id: int, given: Mapping[str, object], version: int | None = None
) -> list[Label]:
    """Store the caller's answers by the questions' names; None takes an answer back. An answer that the caller gave
    before is written once. Returns the caller's current labels on the sample.

    Raises `Invalid` with the path of each wrong answer, `Stale` where `version` is not the present one.
    """
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        refuse_stale_version(sample, version)
        questions = {row.name: row for row in Question.objects.asked(access.project, sample.kind)}
        own = Label.objects.filter(sample=sample, author=access.user, current=True)
        before = {label.question_id: label for label in own}
        values, errors = dict[Question, object](), list[FieldError]()
        for name, value in given.items():
            question = questions.get(name)
            if question is None:
                choose = f"Choose one of {', '.join(questions)}." if questions else "There are none."
                errors.append(FieldError(f"labels.{name}", f"is not a question for this sample. {choose}"))
                continue
            try:
                values[question] = None if value is None else _checked(access, sample, question, value)
            except BadValue as wrong:
                errors.append(FieldError(f"labels.{name}", str(wrong)))
        refuse_errors(errors)
        changed = [question for question, value in values.items() if _value(before.get(question.pk)) != value]
        for question in changed:
            _replace(access, sample, question, values[question], before.get(question.pk))
        if changed:
            access.record(
                "sample.label",
                str(sample.pk),
                {"questions": [question.name for question in changed], "version": sample.version},
            )
        return list(own.filter(value__isnull=False).select_related("question", "author", "sample").order_by("id"))


def field_of(access: Access, sample: Sample, given: object) -> str:
    """The stored name of a field; `left` and `right` are those that the caller sees. Raises `BadValue` where the name
    would tell a blind reviewer which answer is left."""
    name = given if isinstance(given, str) else ""
    if name in SIDES and reviews_blind(access) and hides_sides(access, sample):
        raise BadValue("names a side that is hidden from you; say left or right")
    if name in (LEFT, RIGHT) and sample.kind == SampleKind.TURN:
        seats = shown_seats(access, sample, own_lease(sample, access))
        return FIELDS[seats.left if name == LEFT else seats.right]
    return name


def shown_value(access: Access, label: Label) -> object:
    """The answer as its reader may see it: while the sides are hidden, spans name the place of their answer."""
    is_span = label.question.kind == QuestionKind.SPAN and label.value is not None
    if not is_span or not hides_sides(access, label.sample):
        return label.value
    seats = shown_seats(access, label.sample, own_lease(label.sample, access))
    return [
        {**span, "field": place_of(SIDES[span["field"]], seats) if span["field"] in SIDES else span["field"]}
        for span in label.value or ()
    ]


def _checked(access: Access, sample: Sample, question: Question, value: object) -> object:
    texts: dict[str, str] = {}
    if question.kind == QuestionKind.SPAN and isinstance(value, list):
        value = [dict(span) if isinstance(span, dict) else span for span in value]
        for span in value:
            if not isinstance(span, dict):
                continue
            span["field"] = field_of(access, sample, span.get("field"))
            found = text_of(sample, span["field"], span.get("revision", NEWEST), access.user.pk)
            if found is not None:
                span["revision"] = found[1]
                texts[span_key(span)] = found[0]
    return checked_value(question, value, texts=texts)


def _value(label: Label | None) -> object:
    return None if label is None else label.value


def _replace(access: Access, sample: Sample, question: Question, value: object, before: Label | None) -> None:
    if before is not None:
        Label.objects.filter(pk=before.pk).update(current=False)
        LabelValue.objects.filter(label=before).delete()
    label = Label.objects.create(
        question=question, sample=sample, author=access.user, value=value, version=sample.version
    )
    words = [] if value is None else words_of(question, value)
    LabelValue.objects.bulk_create(
        LabelValue(label=label, question=question, sample=sample, value=word) for word in words
    )
