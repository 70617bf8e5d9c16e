"""Questions: their fields, the rules of their wording, REST calls and the settings tab *Labels*."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Any, cast

from django import forms
from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from pydantic import Field

from curation.labels.models import Label, LabelValue, Question, QuestionKind
from curation.projects.access import Access, enter, project_page
from curation.projects.models import Project, Scope
from curation.projects.resource import Resource
from curation.projects.settings.context import settings_context
from curation.samples.models import SampleKind, SampleStatus
from curation.web.http.responses import version_of
from curation.web.lists.filters import url_query
from curation.web.problems import Conflict, FieldError, Invalid
from curation.web.schema_form import LinesField, SchemaForm
from curation.web.schemas import Id, Out, StrictModel, answer, optional
from curation.web.text.storable import text_errors

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
MAX_QUESTIONS, MAX_CHOICES, MAX_CHOICE, MAX_RATING = 20, 50, 60, 100
# The filter `label=name=*` finds any answer.
ANY = "*"


class QuestionIn(StrictModel):
    title: str = Field(title="Question", examples=["What is wrong?"], description="As reviewers read it.")
    name: str = Field(
        examples=["error_type"],
        description="Names it in filters and in the columns of an export; it stays once it is answered.",
    )
    kind: Annotated[str, forms.ChoiceField(choices=QuestionKind.choices, help_text="How reviewers answer.")] = Field(
        title="Answer", examples=["label"], description=", ".join(QuestionKind.values)
    )
    choices: Annotated[list[str | int], LinesField(required=False)] = Field(
        [], examples=[["wrong file", "no test"]], description="Words, of a rating whole numbers; none for a text."
    )
    description: Annotated[str, forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}))] = Field(
        "", examples=["The first mistake that matters."]
    )
    about: Annotated[
        str,
        forms.ChoiceField(
            required=False, choices=[("", "All"), *SampleKind.choices], help_text="Those it is asked about."
        ),
    ] = Field("", title="Samples", examples=["turn"], description="turn or trajectory; empty: all samples.")
    required: bool = Field(False, description="It must be answered before a sample is approved.")


OF_ANSWERS = set(QuestionIn.model_fields) - {"required"}
QuestionChange = optional(
    QuestionIn,
    "QuestionChange",
    archived=(bool | None, Field(None, description="True: it is no longer asked, and its answers stay.")),
)


class QuestionOut(QuestionIn, Out):
    id: Id = Field(examples=["3"])
    archived: bool = Field(examples=[False])
    answered: bool = Field(examples=[True], description="It has answers, so its wording stays.")
    samples: int = Field(examples=[12], description="Decided samples with an answer.")
    counts: dict[str, int] = Field(
        examples=[{"wrong file": 8, "no test": 4}],
        description="Decided samples by choice; the filter `label=name=choice` lists them.",
    )

    @property
    def kind_label(self) -> str:
        return str(QuestionKind(self.kind).label)

    @property
    def about_label(self) -> str:
        return str(SampleKind(self.about).label)


class Questions(Resource[Question]):
    model, noun, plural, tag = Question, "question", "questions", "labels"
    path, row_path = "/questions", "/projects/{slug}/questions/{question_id}"
    calls, names = ("get", "post", "patch", "delete"), {"delete": "delete_project_question"}
    about = {
        "patch": "With answers it keeps its wording (409 `has_answers`): only `required` and `archived` change.",
        "delete": "409 `has_answers` if the question has answers: archive it instead.",
    }
    body, patch, out = QuestionIn, QuestionChange, QuestionOut

    def rows(self, access: Access) -> QuerySet[Question]:
        return Question.objects.filter(project=access.project)

    def shown(self, access: Access, rows: Sequence[Question]) -> list[QuestionOut]:
        wanted = {str(row.pk) for row in rows}
        return [row for row in counted_questions(access.project) if row.id in wanted]

    def subject(self, row: Question) -> str:
        return row.name

    def version(self, access: Access, row: Question) -> str:
        return version_of([QuestionIn.model_validate(row).model_dump(), row.archived_at])

    def create(self, access: Access, body: QuestionIn) -> Question:
        """Raises `Invalid` with the path of each error, `Conflict` for a name that is taken."""
        access.require(self.changes)
        checked = check_question(body)
        with transaction.atomic():
            Project.objects.select_for_update().get(pk=access.project.pk)
            if self.rows(access).filter(archived_at=None).count() >= MAX_QUESTIONS:
                raise Conflict(f"A project has at most {MAX_QUESTIONS} questions. Archive one first.", code="too_many")
            row = Question(project=access.project, created_by=access.user, **checked.model_dump())
            _save(row)
            self.record(access, "create", row, checked.model_dump())
        return row

    def update(self, access: Access, row: Question, body: Any) -> Question:
        """Change the given fields. A question that has an answer keeps its wording: only `required` and `archived`
        change."""
        access.require(self.changes)
        given = body.model_dump(exclude_none=True)
        archived = given.pop("archived", None)
        before = QuestionIn.model_validate(row)
        after = check_question(before.model_copy(update=given)) if given else before
        changed: dict[str, object] = {
            name: [getattr(before, name), value] for name, value in after if getattr(before, name) != value
        }
        if OF_ANSWERS & changed.keys() and _is_answered(row):
            raise Conflict(
                f"{row.title!r} has answers, so its wording stays. Archive it and add another question.",
                code="has_answers",
            )
        if archived is not None and archived != (row.archived_at is not None):
            row.archived_at = timezone.now() if archived else None
            changed["archived"] = [not archived, archived]
        if changed:
            for name, value in after:
                setattr(row, name, value)
            with transaction.atomic():
                _save(row)
                self.record(access, "update", row, changed)
        return row

    def delete(self, access: Access, row: Question) -> None:
        """Delete a question that nobody has answered; `Conflict` for one with answers."""
        if _is_answered(row):
            raise Conflict(f"{row.title!r} has answers. Archive it instead.", code="has_answers")
        super().delete(access, row)


questions = Questions()
router = questions.router()


@router.get(
    "/projects/{slug}/questions",
    response=answer("QuestionList", data=list[QuestionOut]),
    summary="The questions, with counts of answers",
)
def list_questions(request: HttpRequest, slug: str) -> dict[str, object]:
    """At most a few dozen, on one page. `POST /samples/{id}/labels` answers them."""
    access = enter(request, slug, Scope.READ)
    return {"data": counted_questions(access.project)}


def _is_answered(question: Question) -> bool:
    return Label.objects.filter(question=question).exists()


def _save(question: Question) -> None:
    try:
        with transaction.atomic():
            question.save()
    except IntegrityError:
        error = FieldError("name", "is taken; an archived question may have it")
        detail = f"A question has the name {question.name!r} already; choose another."
        raise Conflict(detail, code="name_taken", errors=[error]) from None


def check_question(body: QuestionIn) -> QuestionIn:
    """Return the question as it is saved. Raises `Invalid` with every error."""
    errors = []
    if not NAME.fullmatch(body.name):
        errors.append(FieldError("name", "is 1 to 40 lower-case letters, digits and _, and begins with a letter"))
    if not body.title.strip():
        errors.append(FieldError("title", "is empty"))
    for field, most in (("title", 120), ("description", 1000)):
        errors += text_errors(field, getattr(body, field), at_most=most)
    if body.about not in ("", *SampleKind.values):
        errors.append(FieldError("about", f"is empty or one of {', '.join(SampleKind.values)}"))
    choices: list[str | int] = []
    if body.kind not in QuestionKind.values:
        errors.append(FieldError("kind", f"is one of {', '.join(QuestionKind.values)}"))
    else:
        try:
            choices = _choices(body.kind, list(body.choices))
        except ValueError as error:
            errors.append(FieldError("choices", str(error)))
    if errors:
        raise Invalid.fields(errors)
    texts = {"title": body.title.strip(), "description": body.description.strip()}
    return body.model_copy(update={**texts, "choices": choices})


def _choices(kind: str, given: list[str | int]) -> list[str | int]:
    if kind == QuestionKind.TEXT:
        if given:
            raise ValueError("a text has no choices")
        return []
    if not 2 - (kind == QuestionKind.SPAN) <= len(given) <= MAX_CHOICES:
        raise ValueError(f"has {'1' if kind == QuestionKind.SPAN else '2'} to {MAX_CHOICES} choices")
    if len(set(given)) != len(given):
        raise ValueError("has a choice twice")
    if kind == QuestionKind.RATING:
        if not all(type(one) is int and 0 <= one <= MAX_RATING for one in given):
            raise ValueError(f"has whole numbers from 0 to {MAX_RATING}")
        return sorted(given)
    words = [one.strip() if isinstance(one, str) else "" for one in given]
    if not all(words) or len(set(words)) != len(words) or ANY in words:
        raise ValueError(f"has different words, none of them empty or {ANY}")
    wrong = [error.message for word in words for error in text_errors("choices", word, at_most=MAX_CHOICE)]
    if wrong:
        raise ValueError(wrong[0])
    return cast(list[str | int], words)


class QuestionForm(SchemaForm[QuestionIn]):
    def clean(self) -> dict[str, Any]:
        """A rating has numbers."""
        given = self.cleaned_data
        if given.get("kind") == QuestionKind.RATING:
            given["choices"] = [int(line) if line.isdecimal() else line for line in given.get("choices", ())]
        return super().clean()

    def check(self) -> None:
        check_question(QuestionIn(**{"title": "", "name": "", "kind": "", **self.cleaned_data}))


@project_page(Scope.READ, "GET", "POST")
def question_list(request: HttpRequest, access: Access) -> HttpResponse:
    form = QuestionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            questions.create(access, form.body())
            return redirect("question-list", access.project.slug)
    samples = reverse("sample-list", args=[access.project.slug])
    context = {
        **settings_context(access, "labels", f"/api/v1/projects/{access.project.slug}/questions"),
        "form": form,
        "rows": [(row, _links(samples, row)) for row in counted_questions(access.project)],
    }
    return render(request, "labels/list.html", context, status=form.status)


@project_page(Scope.ADMIN, "POST")
def question_change(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The buttons of one question: archive, ask again, require, do not require, delete."""
    with transaction.atomic():
        row = questions.locked(access, questions.one(access, pk))
        match request.POST.get("do"):
            case "archive" | "unarchive" as word:
                questions.update(access, row, QuestionChange.model_validate({"archived": word == "archive"}))
            case "require" | "unrequire" as word:
                questions.update(access, row, QuestionChange.model_validate({"required": word == "require"}))
            case "delete":
                questions.delete(access, row)
    return redirect("question-list", access.project.slug)


def _links(samples: str, row: QuestionOut) -> list[tuple[str, int, str]]:
    """Each choice with its count and the list of its samples; of a text any answer."""
    values = row.counts or {"*": row.samples}
    return [
        ("any answer" if value == "*" else value, count, f"{samples}?{_query(row.name, value)}")
        for value, count in values.items()
    ]


def _query(name: str, value: str) -> str:
    return url_query([("label", f"{name}={value}".replace(",", "\\,"))])


def counted_questions(project: Project) -> list[QuestionOut]:
    """The project's questions, those in use first. The filter `label=name=value` lists the samples behind a count."""
    questions = Question.objects.filter(project=project)
    found = sorted(questions, key=lambda question: (question.archived_at is not None, question.pk))
    chosen: dict[int, dict[str, int]] = defaultdict(dict)
    values = LabelValue.objects.filter(question__in=found).exclude(sample__status=SampleStatus.PENDING)
    for question_id, value, count in values.values_list("question_id", "value").annotate(
        Count("sample", distinct=True)
    ):
        chosen[question_id][value] = count
    labels = Label.objects.filter(question__in=found)
    current = labels.filter(current=True, value__isnull=False).exclude(sample__status=SampleStatus.PENDING)
    samples = dict(current.values_list("question_id").annotate(Count("sample", distinct=True)))
    answered = set(labels.values_list("question_id", flat=True).distinct())
    return [
        QuestionOut(
            **QuestionIn.model_validate(question).model_dump(),
            id=str(question.pk),
            archived=question.archived_at is not None,
            answered=question.pk in answered,
            samples=samples.get(question.pk, 0),
            counts={str(choice): chosen[question.pk].get(str(choice), 0) for choice in question.choices}
            if question.kind != QuestionKind.TEXT
            else {},
        )
        for question in found
    ]
