"""Saved recipes, exports and their files."""

from collections.abc import Iterable
from typing import ClassVar

import orjson
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.db import models
from django.urls import reverse

from curation.projects.models import Blocker, Project
from curation.runs.models import DependsOnRun, ResultOfRun, Run, RunState
from curation.samples.models import Sample
from curation.trajectories.models import Pair

SHOWN_CHOICES = 200
MANIFEST = "manifest.json"
# The audit log keeps the manifest of a deleted export; of a larger one only the hash.
MOST_MANIFEST_BYTES = 1_000_000


class SavedRecipe(models.Model):
    project = models.ForeignKey(Project, models.CASCADE, related_name="recipes")
    name = models.CharField(max_length=80)
    document = models.JSONField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="recipe_name_once")]

    def __str__(self) -> str:
        return self.name


class ExportQuerySet(models.QuerySet["Export"]):
    def of(self, project: Project) -> "ExportQuerySet":
        """Return a project's exports with the columns of their list, in three queries."""
        rows = self.filter(project=project, run__deleting_at=None)
        return rows.select_related("run__created_by").prefetch_related("files")

    def written(self, project: Project) -> "ExportQuerySet":
        """Return a project's exports whose files exist, the newest first."""
        return self.of(project).filter(ready=True).order_by("-id")

    def visible_to(self, user: User) -> "ExportQuerySet":
        rows = self.filter(project__in=Project.objects.visible_to(user), run__deleting_at=None)
        return rows.select_related("project", "run__created_by")


class Export(ResultOfRun):
    """An export. Its state is its run's. Its files exist once all of them are written.

    `plan` is the grouping of rows, once it is made (`curation.exports.hygiene.plan`). `counts` are the progress of
    writing, and once `ready` the counts of the manifest. `examples` names a few skipped samples per reason for the
    page.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="exports")
    recipe = models.JSONField()
    recipe_name = models.CharField(max_length=80, blank=True, default="")
    plan = models.JSONField(default=dict)
    counts = models.JSONField(default=dict)
    examples = models.JSONField(default=dict)
    manifest_sha256 = models.CharField(max_length=64, blank=True, default="")
    ready = models.BooleanField(default=False)
    kept = models.BooleanField(default=False, help_text="A person keeps it: retention does not delete it.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ExportQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["project", "-id"], name="export_by_project")]

    def __str__(self) -> str:
        return f"export {self.pk}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        rows = FrozenRow.objects.filter(sample_id__in=Sample.objects.made_by(run).values("pk")).values("export_id")
        pairs = FrozenPair.objects.filter(pair_id__in=Pair.objects.filter(run=run).values("pk")).values("export_id")
        found = cls.objects.filter(project=run.project_id, run__deleting_at=None, pk__in=rows.union(pairs)).count()
        one, many = "{} export contains its rows.", "{} exports contain its rows."
        yield from run.blocked_by(found, one, "export-list", plural=many)
        if export := cls.objects.filter(run=run).first():
            pushes = Run.objects.live().filter(kind="push", params__export=str(export.pk))
            for push in pushes.filter(project=run.project_id):
                url = reverse("run-page", args=[run.project.slug, push.pk])
                yield Blocker("A run is pushing this export. Wait for it, or cancel it.", url)

    @classmethod
    def audit_data_of(cls, run: Run) -> dict[str, object]:
        """The manifest, since its file is deleted."""
        export = cls.objects.filter(run=run).first()
        if export is None:
            return {}
        data: dict[str, object] = {
            "export": str(export.pk),
            "manifest_sha256": export.manifest_sha256,
            "files": list(export.files.values("name", "rows", "sha256")),
        }
        file = export.files.filter(name=MANIFEST, bytes__lte=MOST_MANIFEST_BYTES).first()
        if file is not None and default_storage.exists(file.stored_as):
            with default_storage.open(file.stored_as) as opened:
                data["manifest"] = orjson.loads(opened.read())
        return data

    def samples(self) -> models.QuerySet[Sample]:
        """The samples of its rows, as they are now, also those of the rejected trajectories."""
        rows = FrozenRow.objects.filter(export=self).values("sample_id")
        pairs = Pair.objects.filter(pk__in=FrozenPair.objects.filter(export=self).values("pair_id"))
        return Sample.objects.filter(pk__in=rows.union(pairs.values("rejected__sample_id"), all=True))

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files.all() if file.format)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files.all())

    @property
    def state(self) -> RunState:
        return RunState(self.run.state)


class ExportFile(models.Model):
    """A file of an export. `stored_as` is its name in storage, `bytes` and `sha256` are of the file as stored and
    downloaded."""

    export = models.ForeignKey(Export, models.CASCADE, related_name="files")
    name = models.CharField(max_length=120)
    stored_as = models.CharField(max_length=300)
    format = models.CharField(max_length=40, blank=True, default="")
    split = models.CharField(max_length=20, blank=True, default="")
    rows = models.PositiveBigIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["export", "name"], name="export_file_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def has_lines(self) -> bool:
        """Whether `rows` counts its lines."""
        return self.name.endswith((".jsonl", ".gz"))


class FrozenRow(models.Model):
    """A sample as it was when the export began: the same recipe on the same frozen rows gives the same bytes.

    `revision_id` is the kept revision. Score, bucket and flags are stored because scoring again changes them without a
    new version. `duplicate_of` is the sample that is exported in its place, `over_cap` the field whose cap is full.
    """

    export = models.ForeignKey(Export, models.CASCADE, related_name="frozen")
    sample_id = models.BigIntegerField()
    # No column: a join to the sample as it is now, if it still exists.
    sample = models.ForeignObject(
        Sample, models.DO_NOTHING, from_fields=["sample_id"], to_fields=["id"], null=True, related_name="+"
    )
    version = models.PositiveIntegerField()
    revision_id = models.BigIntegerField(null=True)
    score = models.FloatField(null=True)
    bucket = models.CharField(max_length=8, blank=True, default="")
    flags = models.PositiveSmallIntegerField(default=0)
    duplicate_of = models.BigIntegerField(null=True)
    over_cap = models.CharField(max_length=60, blank=True, default="")
    contaminated = models.CharField(max_length=100, blank=True, default="")
    skipped = models.BooleanField(
        default=False, db_default=False, help_text="Once the export is ready: it has no row in the files."
    )

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["export", "sample_id"], name="frozen_row_once")]
        indexes: ClassVar = [
            # The exports of a sample; the duplicates of an export.
            models.Index(fields=["sample_id"], name="frozen_row_of_sample"),
            models.Index(
                fields=["export", "duplicate_of", "sample_id"],
                name="frozen_duplicates",
                condition=models.Q(duplicate_of__isnull=False),
            ),
            # The samples that left.
            models.Index(fields=["export", "sample_id"], name="frozen_exported", condition=models.Q(skipped=False)),
        ]

    def __str__(self) -> str:
        return f"{self.sample_id}@{self.version}"


class ContaminatedSample(models.Model):
    """A sample of an export that contains a held-out row. `levels` say how it matches, the strongest way first
    (`judging.contamination.levels`); `row` counts from 1. `prompt` is the end of the held-out row's prompt,
    `answer` the beginning of its answer."""

    export = models.ForeignKey(Export, models.CASCADE, related_name="contaminated", db_index=False)
    sample_id = models.BigIntegerField()
    held_out = models.CharField(max_length=60)
    row = models.PositiveIntegerField()
    levels = models.JSONField(default=list)
    prompt = models.TextField(blank=True, default="")
    answer = models.TextField(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["export", "sample_id"], name="contaminated_sample_once")
        ]

    def __str__(self) -> str:
        return f"{self.sample_id} contains {self.held_out} {self.row}"


class FrozenPair(models.Model):
    """A pair whose chosen trajectory is a frozen sample's. Pairs of later runs are not part of the export."""

    export = models.ForeignKey(Export, models.CASCADE, related_name="frozen_pairs", db_index=False)
    sample_id = models.BigIntegerField()
    pair_id = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["export", "sample_id", "pair_id"], name="frozen_pair_once")
        ]

    def __str__(self) -> str:
        return f"pair {self.pair_id} of {self.sample_id}"


class SampleSignature(models.Model):
    """The signature of a sample's decided text (`curation.exports.hygiene.signatures`). It is out of date if another
    text was approved since (`text_sha256`, or of a rejection its id), or `version` is another one."""

    sample = models.OneToOneField(Sample, models.CASCADE, primary_key=True, related_name="signature")
    version = models.PositiveSmallIntegerField()
    text_sha256 = models.CharField(max_length=64)
    stored = models.BinaryField(max_length=16, default=b"", help_text="Digest of the session that has this hash.")
    exact = models.BinaryField(max_length=8)
    near = models.BinaryField(max_length=512)

    def __str__(self) -> str:
        return f"signature of sample {self.sample_id}"


class RoundQuerySet(models.QuerySet["Round"]):
    def of(self, project: Project) -> "RoundQuerySet":
        return self.filter(project=project, rollout__deleting_at=None).select_related("rollout", "export__run")

    def visible_to(self, user: User) -> "RoundQuerySet":
        rows = self.filter(project__in=Project.objects.visible_to(user), rollout__deleting_at=None)
        return rows.select_related("project", "rollout", "export__run")

    def chain_of(self, round_: "Round") -> "list[Round]":
        """The rounds of its chain, the first one first."""
        return list(self.filter(chain=round_.chain).order_by("number", "id"))


class Round(DependsOnRun):
    """One round of self-training: an operator's rollouts, and the export of those that people approved.

    E. Zelikman et al., "STaR: Bootstrapping Reasoning With Reasoning" (2022). Rounds of one `chain`, the id of its
    first round, follow each other: the operator of a round was trained on the export of the round before.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="rounds", db_index=False)
    chain = models.BigIntegerField(null=True)
    number = models.PositiveSmallIntegerField(default=1)
    operator = models.CharField(max_length=60, help_text="Name of the endpoint.")
    rollout = models.OneToOneField(Run, models.CASCADE, related_name="round")
    export = models.OneToOneField(Export, models.SET_NULL, null=True, related_name="round")
    formats = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RoundQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["chain", "number"], name="round_once")]
        # The list; the rounds of a chain.
        indexes: ClassVar = [models.Index(fields=["project", "id"], name="round_list")]

    def __str__(self) -> str:
        return f"round {self.number}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        """A round is deleted with its rollout, unless another round follows it."""
        own = cls.objects.filter(rollout=run).first()
        if own and cls.objects.filter(chain=own.chain, number__gt=own.number).exists():
            yield Blocker(f"Round {own.number} has a next round.", reverse("round-list", args=[run.project.slug]))


def export_choices(project: Project) -> list[tuple[str, str]]:
    """The newest exports that are written, for a form."""
    exports = Export.objects.written(project)[:SHOWN_CHOICES]
    return [(str(export.pk), f"Export {export.pk} {export.recipe_name}".strip()) for export in exports]
