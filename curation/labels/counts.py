"""How often each answer was given. Answers on pending samples are counted once the sample is decided."""

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Count

from curation.labels.models import Label, LabelValue, Question, QuestionKind
from curation.projects.models import Project
from curation.samples.models import SampleStatus


@dataclass(frozen=True, slots=True)
class Counted:
    """`values` are the samples with each choice, `samples` those with any answer. `answered` says whether there is any
    label, on pending samples too."""

    question: Question
    values: list[tuple[str, int]]
    samples: int
    answered: bool


def counted_questions(project: Project) -> list[Counted]:
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
        Counted(
            question,
            [(str(choice), chosen[question.pk].get(str(choice), 0)) for choice in question.choices]
            if question.kind != QuestionKind.TEXT
            else [],
            samples.get(question.pk, 0),
            question.pk in answered,
        )
        for question in found
    ]
