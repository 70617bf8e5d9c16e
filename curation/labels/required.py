"""Questions that must be answered before a sample is approved."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.models import QuerySet

from curation.labels.models import Label, Question
from curation.projects.models import Project
from curation.samples.models import Sample
from curation.web.database.prepared import Prepared
from curation.web.problems import FieldError, Invalid


def _required(project: int) -> QuerySet[Question]:
    return Question.objects.filter(project=project, archived_at=None, required=True).order_by("id")


# Every approval makes this query, and most projects require nothing.
_first_required = Prepared(_required, project=int)


def unanswered(project: Project, samples: Sequence[Sample], authors: Sequence[User]) -> dict[int, list[Question]]:
    """The required questions that none of these people has answered, by sample; samples without any are left out. One
    query in a project that requires nothing."""
    if _first_required.first(project=project.pk) is None:
        return {}
    required = list(_required(project.pk))
    rows = Label.objects.filter(
        question__in=required, sample__in=samples, author__in=authors, current=True, value__isnull=False
    )
    answered = set(rows.values_list("sample_id", "question_id"))
    missing = {
        sample.pk: [
            question
            for question in required
            if question.about in ("", sample.kind) and (sample.pk, question.pk) not in answered
        ]
        for sample in samples
    }
    return {pk: questions for pk, questions in missing.items() if questions}


def refuse_unanswered(project: Project, sample: Sample, authors: Sequence[User]) -> None:
    """Refuse to approve a sample before one of these people has answered its required questions."""
    missing = unanswered(project, [sample], authors).get(sample.pk, [])
    if missing:
        raise Invalid(
            f"Answer before you approve sample {sample.pk}: {titles(missing)}",
            code="labels_missing",
            errors=[FieldError(f"labels.{question.name}", "is required") for question in missing],
        )


def titles(questions: Sequence[Question]) -> str:
    return ", ".join(question.title for question in questions)
