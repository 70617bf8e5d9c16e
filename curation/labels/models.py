"""Questions that a project asks about its samples, and the labels that people give as answers."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from curation.projects.models import Project
from curation.samples.models import Sample, SampleKind, SampleStatus


class QuestionKind(models.TextChoices):
    """The type of an answer: one choice, several, a whole number, marked parts of a text with a choice each, or
    text."""

    LABEL = "label", "One label"
    MULTI_LABEL = "multi_label", "Several labels"
    RATING = "rating", "Rating"
    SPAN = "span", "Spans"
    TEXT = "text", "Text"


class QuestionQuerySet(models.QuerySet["Question"]):
    def asked(self, project: Project, kind: str) -> "QuestionQuerySet":
        """The questions about samples of this kind that are not archived."""
        return self.filter(project=project, archived_at=None, about__in=("", kind)).order_by("id")


class Question(models.Model):
    """One question. `name` names it in filters, in REST and in the columns of an export; `about` is the kind of its
    samples, empty for all. Once it has a label, only `required` and `archived_at` change."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="questions", db_index=False)
    name = models.CharField(max_length=40)
    title = models.CharField(max_length=120)
    description = models.CharField(max_length=1000, blank=True, default="")
    kind = models.CharField(max_length=11, choices=QuestionKind)
    choices = models.JSONField(default=list, help_text="Words, of a rating whole numbers; empty for text.")
    about = models.CharField(max_length=10, choices=SampleKind, blank=True, default="")
    required = models.BooleanField(default=False, help_text="Must be answered before a sample is approved.")
    archived_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = QuestionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["id"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="question_once")]

    def __str__(self) -> str:
        return self.title


class LabelQuerySet(models.QuerySet["Label"]):
    def visible_to(self, user_id: int) -> "LabelQuerySet":
        """A person's own labels, and those of others on samples that are decided."""
        return self.filter(Q(author=user_id) | ~Q(sample__status=SampleStatus.PENDING))


class Label(models.Model):
    """One person's answer to one question about one sample. Rows are only added: a later answer makes the earlier one
    not `current`, and a `value` of None takes an answer back. An `undone` answer gives way to the one before it.

    `value` is a choice, a list of choices, a number, a text, or for spans `[{field, revision, start, end, label}]`:
    `field` is `challenger`, `king` or `turn:N`, `start` and `end` are code points of its text, and `revision` is the id
    of that text, None for the text as recorded. `version` is the sample's version that was labelled.
    """

    question = models.ForeignKey(Question, models.CASCADE, related_name="labels")
    sample = models.ForeignKey(Sample, models.CASCADE, related_name="labels", db_index=False)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="labels")
    value = models.JSONField(null=True)
    version = models.PositiveIntegerField()
    current = models.BooleanField(default=True)
    undone = models.BooleanField(default=False, db_default=False, help_text="Its author undid it.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = LabelQuerySet.as_manager()

    class Meta:
        # A sample's labels, for its page and for exports.
        indexes: ClassVar = [models.Index(fields=["sample", "id"], name="label_by_sample")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["sample", "question", "author"], condition=Q(current=True), name="label_current_once"
            )
        ]

    def __str__(self) -> str:
        return f"label {self.pk} of sample {self.sample_id}"


class LabelValue(models.Model):
    """One choice in a current label, as filters and counts find it. A text is not here."""

    label = models.ForeignKey(Label, models.CASCADE, related_name="values")
    question = models.ForeignKey(Question, models.CASCADE, related_name="values", db_index=False)
    sample = models.ForeignKey(Sample, models.CASCADE, related_name="label_values")
    value = models.CharField(max_length=60)

    class Meta:
        # The samples with an answer.
        indexes: ClassVar = [models.Index(fields=["question", "value", "sample"], name="label_value_samples")]

    def __str__(self) -> str:
        return self.value
