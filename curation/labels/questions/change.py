"""Add, change, archive and delete questions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from django.db import IntegrityError, transaction
from django.utils import timezone

from curation.labels.models import Label, Question, QuestionKind
from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Project, Scope
from curation.samples.models import Kind
from curation.web.ids import find
from curation.web.problems import Conflict, FieldError, Invalid
from curation.web.text.storable import text_errors

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
MAX_QUESTIONS, MAX_CHOICES, MAX_CHOICE, MAX_RATING = 20, 50, 60, 100
# The filter `label=name=*` finds any answer.
ANY = "*"
OF_ANSWERS = ("name", "title", "description", "kind", "choices", "about")


@dataclass(frozen=True, slots=True)
class Wording:
    """The text of a question and its choices: words, or whole numbers for a rating."""

    name: str
    title: str
    kind: str
    description: str = ""
    choices: Sequence[str | int] = ()
    about: str = ""
    required: bool = False


def add_question(*, access: Access, wording: Wording) -> Question:
    """Raises `Invalid` with the path of each error, `Conflict` for a name that is taken."""
    access.require(Scope.ADMIN)
    values = check_wording(wording)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=access.project.pk)
        if Question.objects.filter(project=access.project, archived_at=None).count() >= MAX_QUESTIONS:
            raise Conflict(f"A project has at most {MAX_QUESTIONS} questions. Archive one first.", code="too_many")
        try:
            with transaction.atomic():
                question = Question.objects.create(project=access.project, created_by=access.user, **values)
        except IntegrityError:
            raise _taken(wording.name) from None
        record(actor=access.user, project=access.project, action="question.create", subject=wording.name, data=values)
    return question


def change_question(
    *, access: Access, question_id: str, wording: Wording | None = None, archived: bool | None = None
) -> Question:
    """Change the given fields. A question that has an answer keeps its wording: only `required` and `archived`
    change."""
    access.require(Scope.ADMIN)
    with transaction.atomic():
        question = locked_question(access, question_id)
        before = {name: getattr(question, name) for name in (*OF_ANSWERS, "required")}
        after = check_wording(wording) if wording else before
        if any(before[name] != after[name] for name in OF_ANSWERS) and _is_answered(question):
            raise Conflict(
                f"{question.title!r} has answers, so its wording stays. Archive it and add another question.",
                code="has_answers",
            )
        changed = {name: [before[name], value] for name, value in after.items() if before[name] != value}
        if archived is not None and archived != (question.archived_at is not None):
            after = {**after, "archived_at": timezone.now() if archived else None}
            changed["archived"] = [not archived, archived]
        if not changed:
            return question
        for name, value in after.items():
            setattr(question, name, value)
        try:
            with transaction.atomic():
                question.save()
        except IntegrityError:
            raise _taken(question.name) from None
        record(actor=access.user, project=access.project, action="question.update", subject=question.name, data=changed)
    return question


def delete_question(*, access: Access, question_id: str) -> None:
    """Delete a question that nobody has answered; `Conflict` for one with answers."""
    access.require(Scope.ADMIN)
    with transaction.atomic():
        question = locked_question(access, question_id)
        if _is_answered(question):
            raise Conflict(f"{question.title!r} has answers. Archive it instead.", code="has_answers")
        question.delete()
        record(actor=access.user, project=access.project, action="question.delete", subject=question.name)


def wording_of(question: Question, **changes: object) -> Wording:
    return Wording(**{name: getattr(question, name) for name in (*OF_ANSWERS, "required")} | changes)


def question_of(access: Access, question_id: str) -> Question:
    return find(Question.objects.filter(project=access.project), question_id, "question")


def locked_question(access: Access, question_id: str) -> Question:
    return find(Question.objects.filter(project=access.project).select_for_update(), question_id, "question")


def _is_answered(question: Question) -> bool:
    return Label.objects.filter(question=question).exists()


def _taken(name: str) -> Conflict:
    error = FieldError("name", "is taken; an archived question may have it")
    return Conflict(f"A question has the name {name!r} already; choose another.", code="name_taken", errors=[error])


def check_wording(wording: Wording) -> dict[str, object]:
    """Return the columns of a question. Raises `Invalid` with every error."""
    errors = []
    if not NAME.fullmatch(wording.name):
        errors.append(FieldError("name", "is 1 to 40 lower-case letters, digits and _, and begins with a letter"))
    if not wording.title.strip():
        errors.append(FieldError("title", "is empty"))
    for field, most in (("title", 120), ("description", 1000)):
        errors += text_errors(field, getattr(wording, field), at_most=most)
    if wording.about not in ("", *Kind.values):
        errors.append(FieldError("about", f"is empty or one of {', '.join(Kind.values)}"))
    choices: list[str | int] = []
    if wording.kind not in QuestionKind.values:
        errors.append(FieldError("kind", f"is one of {', '.join(QuestionKind.values)}"))
    else:
        try:
            choices = _choices(wording.kind, list(wording.choices))
        except ValueError as error:
            errors.append(FieldError("choices", str(error)))
    if errors:
        raise Invalid.fields(errors)
    return {
        "name": wording.name,
        "title": wording.title.strip(),
        "description": wording.description.strip(),
        "kind": wording.kind,
        "choices": choices,
        "about": wording.about,
        "required": wording.required,
    }


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
