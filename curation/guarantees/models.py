"""Audits, the samples that they drew, and guarantees. The use cases are in `curation.review.guarantees`."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from curation.projects.models import Project
from curation.samples.models import Sample


class ClusterColumn(models.TextChoices):
    """Samples that are alike: the column by which they are counted as one."""

    REPO = "repo", "Repository"
    INSTANCE = "instance_id", "Instance"
    SOURCE = "source", "Source"


class Audit(models.Model):
    """A simple random sample of a set, for people to look at without knowing it.

    The set are the samples that the filter found when it was drawn, but for those that no guarantee may approve
    (`left_out` counts them by reason). `levels` are the thresholds that are tested, from strict to loose, and the
    samples of the set at or above each: `[[score, samples], …]`. The draw can be repeated: it is the beginning
    of the set, in the order of its ids, permuted by NumPy's default generator with `seed`. People get the first `drawn`
    of them: `size`, and as many again with each of the `extensions` that were planned at the draw.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="audits")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    filter = models.JSONField(default=dict)
    score = models.CharField(max_length=100, help_text="The name of the score by which samples are ordered.")
    size = models.PositiveIntegerField()
    extensions = models.PositiveSmallIntegerField(default=0, db_default=0)
    drawn = models.PositiveIntegerField()
    alpha = models.FloatField(help_text="Tolerated share of errors, 0 to 1.")
    delta = models.FloatField(help_text="1 − confidence, 0 to 1.")
    cluster = models.CharField(max_length=12, choices=ClusterColumn, blank=True, default="")
    seed = models.BigIntegerField()
    set_sha256 = models.CharField(max_length=64)
    samples = models.PositiveIntegerField(help_text="Number of samples in the set.")
    left_out = models.JSONField(default=dict)
    levels = models.JSONField(default=list)
    spent = models.FloatField(default=0.0, db_default=0.0, help_text="δ of earlier audits of the same samples, in all.")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"audit {self.pk}"

    @property
    def delta_of_test(self) -> float:
        """Each test by the looks so far may be wrong with this chance. How many tests there can be was fixed at the
        draw, and all of them together have δ."""
        return self.delta / (1 + self.extensions)


class AuditSet(models.Model):
    """The samples of an audit's set as one value: three arrays, compressed (`curation.review.guarantees.sets`)."""

    audit = models.OneToOneField(Audit, models.CASCADE, primary_key=True, related_name="set")
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"set of audit {self.audit_id}"


class Guarantee(models.Model):
    """The promise that at most α of the samples that it approved would be rejected or changed by people.

    Workers approve them in batches, in the order of their ids up to `cursor`. A withdrawn guarantee gives them back in
    the same order, from 0 on; `finished` says whether all is done. `kept` of the unseen samples are not approved:
    people decide them, and a sequential test withdraws the guarantee if they find too many errors.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="guarantees")
    audit = models.ForeignKey(Audit, models.CASCADE, related_name="guarantees")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    threshold = models.FloatField()
    keep_alive = models.FloatField(default=0.0, help_text="Share of the samples that people still look at, 0 to 1.")
    batch = models.CharField(max_length=32, unique=True, help_text="`Decision.batch` of its approvals.")
    samples = models.PositiveIntegerField(help_text="Number of samples to approve; of a finished one those approved.")
    approved = models.PositiveIntegerField(default=0, help_text="Approved so far.")
    kept = models.PositiveIntegerField(default=0)
    cursor = models.BigIntegerField(default=0)
    finished = models.BooleanField(default=False)
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    reason = models.CharField(max_length=300, blank=True, default="", help_text="Why it was withdrawn.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # Those that workers have to finish.
        indexes: ClassVar = [
            models.Index(fields=["id"], name="guarantee_open", condition=models.Q(finished=False)),
        ]

    def __str__(self) -> str:
        return f"guarantee {self.pk}"

    @property
    def state(self) -> str:
        """`approving`, `holds` or `withdrawn`."""
        if self.withdrawn_at is not None:
            return "withdrawn"
        return "holds" if self.finished else "approving"


class DrawQuerySet(models.QuerySet["Draw"]):
    def offered(self) -> "DrawQuerySet":
        """Without those of extensions that nobody has asked for."""
        kept = models.Q(guarantee__isnull=False)
        return self.filter(kept | models.Q(place__lt=models.F("audit__drawn")))


class Draw(models.Model):
    """A sample that an audit drew for people, or that a guarantee keeps for them. Nobody who reviews learns of it.

    A deleted sample stays as a look that nobody took. `pick` and `text_sha256` are those of the approval that a
    guarantee would write: another approval of the sample changes it.
    """

    audit = models.ForeignKey(Audit, models.CASCADE, related_name="draws", db_index=False)
    guarantee = models.ForeignKey(Guarantee, models.CASCADE, null=True, related_name="draws")
    sample = models.ForeignKey(Sample, models.SET_NULL, null=True, related_name="draws")
    place = models.PositiveIntegerField(help_text="Its place in the draw, from 0.")
    score = models.FloatField()
    cluster = models.CharField(max_length=200, blank=True, default="")
    pick = models.CharField(max_length=9, blank=True, default="")
    text_sha256 = models.CharField(max_length=64, blank=True, default="")

    objects = DrawQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["audit", "sample"], name="drawn_once")]

    def __str__(self) -> str:
        return f"draw of {self.sample_id}"
