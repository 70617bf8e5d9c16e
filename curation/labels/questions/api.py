"""REST calls of a project's questions."""

from dataclasses import asdict

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from curation.labels.models import Question
from curation.labels.questions import schemas as s
from curation.labels.questions.change import (
    add_question,
    change_question,
    delete_question,
    locked_question,
    question_of,
    wording_of,
)
from curation.labels.questions.counts import counted_questions
from curation.projects.access import Access, enter
from curation.projects.models import Scope
from curation.web.http.etag import seen_version, set_etag, version_of

router = Router(tags=["labels"])


@router.get("/projects/{slug}/questions", response=s.QuestionList, summary="The questions, with counts of answers")
def list_questions(request: HttpRequest, slug: str) -> dict[str, object]:
    """At most a few dozen, on one page. `POST /samples/{id}/labels` answers them."""
    access = enter(request, slug, Scope.READ)
    return {"data": [s.QuestionOut.of(row) for row in counted_questions(access.project)]}


@router.get("/projects/{slug}/questions/{question_id}", response=s.QuestionOut, summary="One question")
def get_question(request: HttpRequest, response: HttpResponse, slug: str, question_id: str) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    return _out(response, access, question_of(access, question_id))


@router.post("/projects/{slug}/questions", response={201: s.QuestionOut}, summary="Add a question")
def post_question(
    request: HttpRequest, response: HttpResponse, slug: str, body: s.QuestionIn
) -> Status[dict[str, object]]:
    access = enter(request, slug, Scope.ADMIN)
    return Status(201, _out(response, access, add_question(access=access, wording=body.wording())))


@router.patch("/projects/{slug}/questions/{question_id}", response=s.QuestionOut, summary="Change or archive one")
def patch_question(
    request: HttpRequest, response: HttpResponse, slug: str, question_id: str, body: s.QuestionChange
) -> dict[str, object]:
    """A question with answers keeps its wording (409 `has_answers`): only `required` and `archived` change."""
    access = enter(request, slug, Scope.ADMIN)
    given = body.model_dump(exclude_none=True)
    archived = given.pop("archived", None)
    with transaction.atomic():
        question = locked_question(access, question_id)
        seen_version(request, _version(question), now=asdict(wording_of(question)))
        wording = wording_of(question, **given) if given else None
        changed = change_question(access=access, question_id=question_id, wording=wording, archived=archived)
    return _out(response, access, changed)


@router.delete("/projects/{slug}/questions/{question_id}", response={204: None}, summary="Delete an unanswered one")
def delete_project_question(request: HttpRequest, slug: str, question_id: str) -> Status[None]:
    """409 `has_answers` if the question has answers: archive it instead."""
    access = enter(request, slug, Scope.ADMIN)
    with transaction.atomic():
        question = locked_question(access, question_id)
        seen_version(request, _version(question), now=asdict(wording_of(question)))
        delete_question(access=access, question_id=question_id)
    return Status(204, None)


def _version(question: Question) -> str:
    return version_of([asdict(wording_of(question)), question.archived_at])


def _out(response: HttpResponse, access: Access, question: Question) -> dict[str, object]:
    set_etag(response, _version(question))
    return next(s.QuestionOut.of(row) for row in counted_questions(access.project) if row.question.pk == question.pk)
