"""Models of decisions, the predictions they made, and groups of samples that are alike."""

from collections.abc import Iterable
from typing import ClassVar

from django.db import models

from curation.projects.models import Blocker, Project
from curation.runs.models import DependsOnRun, Run
from curation.samples.models import Sample


class ApprovalModel(DependsOnRun):
    """A model of the project's decisions, as a run fitted it: `version` counts those of the project.

    It is kept as `figures` (`approval.resource.FiguresOut`) and as its predictions. The classifier itself is not
    stored: the same decisions, facts and `seed` fit it again. `ready` once every pending sample is predicted.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="approval_models", db_index=False)
    run = models.OneToOneField(Run, models.CASCADE, related_name="approval_model")
    version = models.PositiveIntegerField()
    seed = models.PositiveIntegerField()
    method = models.CharField(max_length=60, blank=True, default="")
    approved = models.PositiveIntegerField(default=0, help_text="Decisions that approve the answer as it was recorded.")
    others = models.PositiveIntegerField(default=0, help_text="Decisions that reject or change it.")
    figures = models.JSONField(default=dict)
    ready = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "version"], name="approval_model_once")]

    def __str__(self) -> str:
        return f"model {self.version}"

    @property
    def decisions(self) -> int:
        return self.approved + self.others

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        made = Prediction.objects.filter(model__run=run)
        return run.blocked_by(made.count(), "Samples with a prediction of its model: {}.", "prediction-page")


class Prediction(models.Model):
    """The last prediction of a sample. `Sample.predicted` repeats its `probability`.

    `reasons` are `[fact, value, change of the log-odds]`, the strongest first. For a sample whose decision the model
    was fitted on, `approved` is that decision, `version` the sample's version with it, and the probability comes from
    other decisions alone; `doubt` ranks the decisions that confident learning finds wrong, from 1.
    """

    sample = models.OneToOneField(Sample, models.CASCADE, related_name="prediction")
    model = models.ForeignKey(ApprovalModel, models.CASCADE, related_name="predictions", db_index=False)
    probability = models.FloatField()
    reasons = models.JSONField(default=list)
    approved = models.BooleanField(null=True)
    version = models.PositiveIntegerField(default=0)
    doubt = models.PositiveIntegerField(null=True)

    class Meta:
        # The decisions to look at again, and the predictions of a model.
        indexes: ClassVar = [models.Index(fields=["model", "doubt", "id"], name="prediction_doubt")]

    def __str__(self) -> str:
        return f"{self.probability:.2f} for sample {self.sample_id}"

    @property
    def decision(self) -> str:
        """In words; "" if the model was not fitted on one."""
        if self.approved is None:
            return ""
        return "approved" if self.approved else "rejected or changed"


class Cluster(DependsOnRun):
    """Samples that are alike, of one of two kinds. The next run of the kind replaces them.

    `words` name it: the commonest of its samples that others have less often.
    """

    class Of(models.TextChoices):
        FAILURES = "failures", "Failures"
        NEW = "new", "Unlike anything reviewed"

    project = models.ForeignKey(Project, models.CASCADE, related_name="clusters", db_index=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="clusters")
    of = models.CharField(max_length=8, choices=Of)
    words = models.JSONField(default=list)
    size = models.PositiveIntegerField()
    samples = models.ManyToManyField(Sample, through="ClusteredSample", related_name="clusters")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # The page, the largest first.
        indexes: ClassVar = [models.Index(fields=["project", "size", "id"], name="cluster_list")]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return ", ".join(self.words) or "no common word"


class ClusteredSample(models.Model):
    """`place` counts the samples of a cluster from 0, the most typical first. `likeness` is the cosine with the nearest
    reviewed sample, of a cluster of new ones."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="members", db_index=False)
    sample = models.ForeignKey(Sample, models.CASCADE, related_name="+")
    place = models.PositiveIntegerField()
    likeness = models.FloatField(null=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "place"], name="clustered_once")]

    def __str__(self) -> str:
        return f"sample {self.sample_id} in {self.cluster_id}"
