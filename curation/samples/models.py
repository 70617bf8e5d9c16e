"""Sample: the curated unit that people review and exports take. Lists read the slim row; text has its own table."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce

from curation.projects.models import Project
from curation.runs.models import Run

_HUGGING_FACE = re.compile(
    r"hf://(?P<kind>datasets|models|spaces)/(?P<name>[^/@]+/[^/@]+)(@(?P<at>[^/]+))?(/(?P<path>.+))?"
)


class SampleKind(models.TextChoices):
    TURN = "turn", "Turn"
    TRAJECTORY = "trajectory", "Trajectory"


class SampleStatus(models.TextChoices):
    PENDING = "pending", "Pending"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    NEEDS_REFINE = "needs_refine", "Needs refining"

    @property
    def tone(self) -> str:
        return {"approved": "good", "rejected": "bad", "needs_refine": "borderline"}.get(self.value, "muted")


class Bucket(models.TextChoices):
    FINAL = "final", "Final"
    REFINED = "refined", "Refined"
    DEFEAT = "defeat", "Defeat"
    UNPARSED = "unparsed", "Unparsed"

    @property
    def tone(self) -> str:
        return {"final": "good", "refined": "borderline", "defeat": "bad"}.get(self.value, "muted")


class Flag(models.IntegerChoices):
    """Bits of `Sample.flags`."""

    LEAK = 1, "leak"
    FLIP = 2, "flip"
    LOOP = 4, "loop"
    TRUNCATED = 8, "truncated"
    INFRA = 16, "infra"
    INJECTION = 32, "injection"
    SECRET = 64, "secret"
    PII = 128, "pii"
    LEAK_READER = 256, "leak_reader"
    CONTROL = 512, "control_text"
    LEAK_UNREAD = 1024, "leak_unread"


# Findings of the scan that no person has cleared. Scoring leaves these bits alone.
SCANNED = Flag.SECRET | Flag.PII | Flag.CONTROL


# Findings of the lint or the second reader: a person has to clear them.
LEAKS = Flag.LEAK | Flag.LEAK_READER


def source_url(source: str, row: int | None) -> str | None:
    """The public address of the sample's row: an `hf://` or `https://` source with the row's number.

    None for uploads and other stores, and for an address with credentials or a signature.
    """
    if row is None:
        return None
    if named := _HUGGING_FACE.fullmatch(source):
        prefix = "" if named["kind"] == "models" else f"{named['kind']}/"
        path = f"/blob/{quote(named['at'] or 'main', safe='')}/{quote(named['path'])}" if named["path"] else ""
        return f"https://huggingface.co/{prefix}{quote(named['name'])}{path}#row={row}"
    try:
        parts = urlsplit(source)
    except ValueError:
        return None
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc or parts.query:
        return None
    return f"{source.partition('#')[0]}#row={row}"


def flag_names(bits: int) -> list[str]:
    """The words behind the bits, in the order of `Flag`."""
    return [flag.label for flag in Flag if bits & flag.value] if bits else []


def flag_bits(names: Sequence[str]) -> int:
    return sum(flag.value for flag in Flag if flag.label in names)


def with_any_flag(bits: int) -> list[int]:
    """Every value of `Sample.flags` that has one of the bits: an index finds values, not bits."""
    return [value for value in range(2 * max(Flag)) if value & bits]


UNSCORED = -1.0


class SampleQuerySet(models.QuerySet["Sample"]):
    _hints: dict[str, Any]  # Django's; the clones of a query have them too

    @property
    def project(self) -> Project | None:
        return self._hints.get("project")

    def of(self, project: Project) -> "SampleQuerySet":
        """The samples of one project; the rows remember it, since a filter may name other rows of the project."""
        rows = self.filter(project=project)
        rows._hints = {**rows._hints, "project": project}
        return rows

    def made_by(self, run: Run) -> "SampleQuerySet":
        """The samples that a run made, and for an import also those that were made from its rows. Samples that a later
        import also had are not its own."""
        samples, made = self.filter(project=run.project_id), models.Q(run=run)
        if run.kind != "import":
            return samples.filter(made)
        made |= models.Q(duel__prompt__run=run) | models.Q(trajectory__scenario__run=run)
        return samples.filter(made).exclude(run=run, duel__prompt__imported_again=True)

    def for_list(self) -> "SampleQuerySet":
        """The columns of a list's rows, in one query; `duel` and `trajectory` belong to layers above."""
        return self.annotate(
            decided_by_name=models.F("decided_by__username"),
            duel_pk=models.F("duel__id"),
            opponent=models.F("duel__opponent"),
            scored_by_panel=models.F("duel__counting__panel__digest"),
            row_offset=models.F("duel__prompt__row_offset"),
            trajectory_pk=models.F("trajectory__id"),
        )

    def as_scored_by(self, run: int) -> "SampleQuerySet":
        """Add the score that a run gave each sample's duel: `ran_id` (None if it gave none) to `ran_panel`."""
        condition = models.Q(duel__scores__run=run)
        rows = self.annotate(ran=models.FilteredRelation("duel__scores", condition=condition))
        return rows.annotate(
            ran_id=models.F("ran__id"),
            ran_score=models.F("ran__score"),
            ran_key=Coalesce(models.F("ran__score_key"), models.F("score_key")),
            ran_bucket=models.F("ran__bucket"),
            ran_panel=models.F("ran__panel__digest"),
        )


class Sample(models.Model):
    """`score` is 0–100 or None; `score_key` repeats it with -1 for None, since a keyset needs a value in every row.

    `priority` orders the queue, the smallest first: the distance to the nearest bucket edge, less deductions for flips,
    spread judges and leaks (`curation.samples.scores`).

    `predicted` is the probability, 0 to 1, that people approve it, or None: from the last model of decisions that read
    it (`curation.predictions`). `predicted_key` repeats it as `score_key` does.
    """

    # Keys without an index of their own: those below begin with the same column.
    project = models.ForeignKey(Project, models.CASCADE, related_name="samples", db_index=False)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="samples", db_index=False)
    kind = models.CharField(max_length=10, choices=SampleKind, default=SampleKind.TURN)
    status = models.CharField(max_length=12, choices=SampleStatus, default=SampleStatus.PENDING)
    bucket = models.CharField(max_length=8, choices=Bucket, blank=True, default="")
    score = models.FloatField(null=True)
    score_key = models.FloatField(default=UNSCORED)
    flags = models.PositiveSmallIntegerField(default=0)
    priority = models.FloatField(default=100.0)
    predicted = models.FloatField(null=True)
    predicted_key = models.FloatField(default=UNSCORED, db_default=UNSCORED)
    source = models.CharField(max_length=200, blank=True, default="")
    repo = models.CharField(max_length=200, blank=True, default="")
    instance_id = models.CharField(max_length=200, blank=True, default="")
    action_style = models.CharField(max_length=20, blank=True, default="")
    model = models.CharField(
        max_length=200,
        blank=True,
        default="",
        help_text="Name of the endpoint that answered as challenger or acted in the trajectory.",
    )
    axes = models.JSONField(default=dict, blank=True, help_text="Axes of the scenario; empty for a turn.")
    preview = models.CharField(max_length=200, blank=True, default="")
    version = models.PositiveIntegerField(default=1)
    # Where several people decide. They change without a new version, which would say that somebody has decided.
    opinions = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Number of people to decide it, from the first decision on; else 0."
    )
    disputed = models.BooleanField(default=False, db_default=False, help_text="They disagree: it is adjudicated.")
    round = models.PositiveIntegerField(
        default=1, db_default=1, help_text="`Decision.round` of the decisions that count together."
    )
    assigned = models.BooleanField(
        default=False, db_default=False, help_text="It is assigned to people (`curation.assignments`), now or once."
    )
    # Written by triggers on leases (`curation.review.queue.lease`).
    leased = models.BooleanField(default=False, db_default=False, help_text="A reviewer has it open.")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="decided_samples", db_index=False
    )
    decided_at = models.DateTimeField(null=True)
    leak_cleared = models.BooleanField(default=False, help_text="A person saw the leak flag and approved.")
    scan_rules = models.CharField(
        max_length=16,
        blank=True,
        default="",
        help_text="Version of the rules under which its texts were scanned as they are; empty: not yet.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SampleQuerySet.as_manager()

    class Meta:
        # `id` ends every index: lists are keyset pages of (sort value, id).
        indexes: ClassVar = [
            # The list in each of its orders.
            models.Index(fields=["project", "id"], name="sample_list"),
            models.Index(fields=["project", "created_at", "id"], name="sample_list_created"),
            models.Index(fields=["project", "score_key", "id"], name="sample_list_score"),
            models.Index(fields=["project", "priority", "id"], name="sample_list_priority"),
            models.Index(fields=["project", "predicted_key", "id"], name="sample_list_predicted"),
            # The list under each of its filters.
            models.Index(fields=["project", "bucket", "id"], name="sample_list_bucket"),
            models.Index(fields=["project", "status", "id"], name="sample_list_status"),
            models.Index(fields=["project", "instance_id", "id"], name="sample_list_instance"),
            models.Index(fields=["project", "repo", "id"], name="sample_list_repo"),
            models.Index(fields=["project", "source", "id"], name="sample_list_source"),
            models.Index(fields=["project", "model", "id"], name="sample_list_model"),
            models.Index(fields=["project", "action_style", "id"], name="sample_list_style"),
            models.Index(fields=["run", "id"], name="sample_list_run"),
            models.Index(
                fields=["decided_by", "id"], name="sample_list_reviewer", condition=models.Q(decided_by__isnull=False)
            ),
            models.Index(fields=["project", "flags", "id"], name="sample_list_flags"),
            # The pass that scans undecided samples under the current rules.
            models.Index(fields=["status", "scan_rules", "id"], name="sample_to_scan"),
            # A bucket by score or by priority: both go with the bucket, so the order's own index would be walked far.
            models.Index(fields=["project", "bucket", "score_key", "id"], name="sample_bucket_score"),
            models.Index(fields=["project", "bucket", "priority", "id"], name="sample_bucket_priority"),
            # The queue: undecided samples, the most borderline first. Not a partial index: SQLite uses those only
            # where the condition is written out, and Django sends it as a parameter.
            models.Index(fields=["project", "status", "priority", "id"], name="sample_queue"),
            # The queue's head, in two halves: unassigned samples come before those that others may leave. Those that
            # reviewers have open are apart, so that a take passes none of them.
            models.Index(
                fields=["project", "status", "assigned", "leased", "priority", "id"], name="sample_queue_free"
            ),
            # The same by predicted approval.
            models.Index(
                fields=["project", "status", "assigned", "leased", "predicted_key", "id"], name="sample_queue_useful"
            ),
            # The same by id: the newest, or those after a random one.
            models.Index(fields=["project", "status", "assigned", "leased", "id"], name="sample_queue_newest"),
            # Samples decided today.
            models.Index(
                fields=["project", "decided_at"],
                name="sample_decided",
                condition=models.Q(decided_at__isnull=False),
            ),
            # Those that wait for more people, or for somebody who adjudicates. By the number too: among indexes that
            # are all searched by the project alone, SQLite takes the one that was made last.
            models.Index(fields=["project", "opinions"], name="sample_opinions", condition=models.Q(opinions__gt=0)),
            # Whether any is assigned: without statistics PostgreSQL would look for one among all undecided samples.
            models.Index(fields=["project", "status"], name="sample_assigned", condition=models.Q(assigned=True)),
        ]

    def __str__(self) -> str:
        return f"sample {self.pk}"

    def shown_flags(self, *, hidden: bool) -> list[str]:
        """The flags that may be listed: of a hidden sample the findings of the scan of its texts."""
        return flag_names(self.flags & SCANNED if hidden else self.flags)

    @property
    def shown_score(self) -> float | None:
        """The score of the run that a list is about, else the sample's own."""
        return self.score if getattr(self, "ran_id", None) is None else getattr(self, "ran_score", None)

    @property
    def shown_bucket(self) -> str:
        return self.bucket if getattr(self, "ran_id", None) is None else getattr(self, "ran_bucket", "")

    @property
    def bucket_tone(self) -> str:
        return Bucket(self.shown_bucket).tone if self.shown_bucket else "muted"

    @property
    def status_tone(self) -> str:
        return SampleStatus(self.status).tone


class SampleText(models.Model):
    """The text that full-text search reads: the prompt's last turns and both answers."""

    sample = models.OneToOneField(Sample, models.CASCADE, primary_key=True, related_name="text")
    body = models.TextField()

    def __str__(self) -> str:
        return self.body[:60]


class Unblinding(models.Model):
    """A curator or admin has seen facts of this sample that are hidden from its reviewers, while it was pending."""

    sample = models.ForeignKey(Sample, models.CASCADE, related_name="unblindings", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="unblindings")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["sample", "user"], name="look_once")]

    def __str__(self) -> str:
        return f"unblinding of {self.sample_id} by {self.user_id}"


class TextScan(models.Model):
    """The scan's findings in a text: `[[rule, start, end], …]` under a version of the rules. It names no sample and no
    project, and the text is only there as its hash."""

    text_sha256 = models.CharField(max_length=64)
    rules = models.CharField(max_length=16, help_text="`judging.scan.scan.rule_set_version`.")
    findings = models.JSONField(default=list)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["text_sha256", "rules"], name="text_scan_once")]

    def __str__(self) -> str:
        return f"scan of {self.text_sha256[:12]}"


class SavedView(models.Model):
    """A filter of a list that a project keeps by name."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="saved_views")
    list = models.CharField(max_length=20, default="samples", help_text="Name of the list, such as `runs`.")
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=2000, help_text="The list's URL query.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "list", "name"], name="saved_view_once")]

    def __str__(self) -> str:
        return self.name
