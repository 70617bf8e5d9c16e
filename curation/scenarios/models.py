"""Scenarios, the small row that lists read; their bundles and gate reports are in tables of their own."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Cast, Coalesce, NullIf

from curation.projects.models import Blocker, Project
from curation.runs.models import DependsOnRun, Run
from curation.samples.models import SampleStatus
from curation.web.ids import IdList

MAX_REASON = 500
# Outcomes of a trajectory for which the machine may be to blame: they say nothing about the model or the scenario.
MACHINE_OUTCOMES = ("timeout", "infra_error", "error")
UNTRIED = -1.0
_COUNTS = models.Q(trajectories__bundle_sha256=models.F("bundle_sha256"))
_COUNTS &= ~models.Q(trajectories__outcome__in=MACHINE_OUTCOMES) & models.Q(trajectories__shortened_from=None)
TRIED = models.Count("trajectories", filter=_COUNTS)
KEPT = models.Count("trajectories", filter=_COUNTS & models.Q(trajectories__keep=True))
_SHOWN = _COUNTS & ~models.Q(trajectories__sample__status=SampleStatus.PENDING)
# Both without the trajectories whose samples are pending.
TRIED_DECIDED = models.Count("trajectories", filter=_SHOWN)
KEPT_DECIDED = models.Count("trajectories", filter=_SHOWN & models.Q(trajectories__keep=True))


class ScenarioStatus(models.TextChoices):
    """`draft → admitted | held | rejected` by the gate, `dry_run` by the structural check alone; an edit makes a draft.

    `held`: it is proven, but the gate's run contradicts an axis that it claims. A person mends or clears the axis.
    """

    DRAFT = "draft", "Draft"
    ADMITTED = "admitted", "Admitted"
    HELD = "held", "Held"
    REJECTED = "rejected", "Rejected"
    DRY_RUN = "dry_run", "Dry run"

    @property
    def tone(self) -> str:
        return {"admitted": "good", "rejected": "bad", "dry_run": "attention", "held": "attention"}.get(
            self.value, "muted"
        )


class Family(models.TextChoices):
    """`shell`: a bundle, run in our sandboxes. `harbor`: a Harbor task, run by Harbor's command."""

    SHELL = "shell", "Shell"
    HARBOR = "harbor", "Harbor"


class Terminal(models.TextChoices):
    EXIT = "exit", "exit"
    PANIC = "panic", "panic"


class ScenarioQuerySet(models.QuerySet["Scenario"]):
    def of(self, project: Project) -> "ScenarioQuerySet":
        return self.filter(project=project)

    def admitted(self) -> "ScenarioQuerySet":
        """Scenarios that passed the gate. Only these are exported."""
        return self.filter(status=ScenarioStatus.ADMITTED)

    def for_rollout(self) -> "ScenarioQuerySet":
        """Admitted scenarios that our sandboxes can run."""
        return self.admitted().filter(family=Family.SHELL)

    def first_of_groups(self) -> "ScenarioQuerySet":
        """One scenario of each group of copies, the first among these rows."""
        by_group = (
            self.order_by()
            .annotate(counted_as=Coalesce("group", "id", output_field=models.BigIntegerField()))
            .values("counted_as")
        )
        return self.filter(pk__in=by_group.annotate(first=models.Min("id")).values("first"))

    def copies_of(self, rows: Sequence["Scenario"]) -> dict[int, int]:
        """Scenario → number of other scenarios of its group, for those that have copies."""
        groups = [row.group for row in rows if row.group is not None]
        grouped = self.filter(group__in=IdList(groups)).order_by().values("group")
        counted = dict(grouped.annotate(n=models.Count("id")).values_list("group", "n"))
        return {row.pk: counted[row.group] - 1 for row in rows if row.group and counted.get(row.group, 1) > 1}

    def with_tries(self) -> "ScenarioQuerySet":
        """With `tried`, `kept` and `kept_rate` (`UNTRIED` where nobody tried) of the bundle as it is.

        It reads the trajectories of all these rows, so a list does it only where it sorts or filters by them.
        """
        rate = Cast(models.F("kept"), models.FloatField()) / NullIf(Cast("tried", models.FloatField()), 0.0)
        return self.annotate(tried=TRIED, kept=KEPT).annotate(
            kept_rate=Coalesce(rate, UNTRIED, output_field=models.FloatField())
        )

    def with_bundle(self) -> "ScenarioQuerySet":
        return self.select_related("text")

    def visible_to(self, user: User) -> "ScenarioQuerySet":
        return self.filter(project__in=Project.objects.visible_to(user))


class Scenario(DependsOnRun):
    """One bundle of a project. `bundle_sha256` identifies the gated and rolled out bundle; `version` counts edits.

    `reason` says why the gate rejected or held it. `axes` repeats the rows of `ScenarioAxis`: lists read one table.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="scenarios", db_index=False)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, help_text="The author or import run that created it.")
    imported_again = models.BooleanField(default=False, help_text="A later import also had it: it outlives the first.")
    name = models.CharField(max_length=120)
    title = models.CharField(max_length=200, blank=True, default="")
    family = models.CharField(max_length=6, choices=Family, default=Family.SHELL)
    axes = models.JSONField(default=dict)
    expected_terminal = models.CharField(max_length=5, choices=Terminal, blank=True, default="")
    authored_by = models.CharField(max_length=120, blank=True, default="")
    seed = models.BigIntegerField(null=True)
    status = models.CharField(max_length=8, choices=ScenarioStatus, default=ScenarioStatus.DRAFT)
    reason = models.CharField(max_length=MAX_REASON, blank=True, default="")
    bundle_sha256 = models.CharField(max_length=64)
    group = models.BigIntegerField(null=True, help_text="The same for copies (`curation.scenarios.copies`).")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ScenarioQuerySet.as_manager()
    # One with a trajectory has been decided since.
    deleted_if = models.Q(trajectories=None, imported_again=False)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="scenario_once")]
        indexes: ClassVar = [
            # The list, and its tabs by status.
            models.Index(fields=["project", "id"], name="scenario_list"),
            models.Index(fields=["project", "status", "id"], name="scenario_list_status"),
            # The copies of a scenario.
            models.Index(fields=["project", "group"], name="scenario_group"),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        edited = cls.objects.filter(run=run, version__gt=1)
        return run.blocked_by(edited.count(), "Scenarios of it that were edited since: {}.", "scenario-list")

    @property
    def status_tone(self) -> str:
        return ScenarioStatus(self.status).tone


class ScenarioText(models.Model):
    """The bundle as one JSON document (`curation.scenarios.bundles.document`), or the task of the family `harbor`
    (`curation.scenarios.bundles.harbor`)."""

    scenario = models.OneToOneField(Scenario, models.CASCADE, primary_key=True, related_name="text")
    bundle = models.JSONField()

    def __str__(self) -> str:
        return f"bundle of scenario {self.scenario_id}"


class ScenarioSignature(models.Model):
    """What tells a bundle from others (`curation.scenarios.copies`)."""

    scenario = models.OneToOneField(Scenario, models.CASCADE, primary_key=True, related_name="signature")
    version = models.PositiveSmallIntegerField()
    exact = models.BinaryField(max_length=8)
    near = models.BinaryField()

    def __str__(self) -> str:
        return f"signature of scenario {self.scenario_id}"


class ScenarioAxis(models.Model):
    """One axis of one scenario, for the coverage heatmap and filters."""

    scenario = models.ForeignKey(Scenario, models.CASCADE, related_name="axis_rows", db_index=False)
    axis = models.CharField(max_length=60)
    value = models.CharField(max_length=60)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["scenario", "axis"], name="scenario_axis_once")]
        # Scenarios that have a value.
        indexes: ClassVar = [models.Index(fields=["axis", "value", "scenario"], name="scenario_axis_value")]

    def __str__(self) -> str:
        return f"{self.axis}={self.value}"


class GateReportQuerySet(models.QuerySet["GateReport"]):
    def newest_of(self, rows: Sequence[Scenario]) -> dict[int, "GateReport"]:
        """The last report on each scenario's current bundle; none if it was edited since or never gated."""
        mine = self.filter(scenario_id__in=IdList([row.pk for row in rows]))
        current = mine.filter(bundle_sha256=models.F("scenario__bundle_sha256")).order_by()
        newest = current.values("scenario_id").annotate(last=models.Max("id")).values("last")
        return {report.scenario_id: report for report in self.filter(pk__in=newest)}


class GateReport(DependsOnRun):
    """The checks of the gate on one bundle, and its verdict.

    `checks`: `[{name, passed, reason, transcript: [{command, output, exit_code, seconds}]}]` in the order they ran.
    `backend`: the sandbox, empty for a dry run. `axes`: `[{axis, value, finding, reason}]`, where all checks passed
    (`curation.scenarios.claims`).
    """

    scenario = models.ForeignKey(Scenario, models.CASCADE, related_name="gate_reports")
    run = models.ForeignKey(Run, models.SET_NULL, null=True)
    bundle_sha256 = models.CharField(max_length=64)
    verdict = models.CharField(max_length=8, choices=ScenarioStatus)
    reason = models.CharField(max_length=MAX_REASON, blank=True, default="")
    checks = models.JSONField(default=list)
    axes = models.JSONField(default=list)
    backend = models.CharField(max_length=20, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = GateReportQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.verdict}: {self.scenario_id}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        gated = cls.objects.filter(run=run, bundle_sha256=models.F("scenario__bundle_sha256"))
        scenarios = gated.exclude(scenario__run=run).values("scenario").distinct().count()
        return run.blocked_by(scenarios, "Scenarios that have their status from it: {}.", "scenario-list")


class AxisClearanceQuerySet(models.QuerySet["AxisClearance"]):
    def of_bundle(self, scenario_id: int, bundle_sha256: str) -> dict[str, "AxisClearance"]:
        """The cleared axes of one version of a scenario."""
        rows = self.filter(scenario=scenario_id, bundle_sha256=bundle_sha256).select_related("user")
        return {row.axis: row for row in rows}


class AxisClearance(models.Model):
    """A person says that a claimed axis is right although the gate saw a mismatch. It is about one bundle."""

    scenario = models.ForeignKey(Scenario, models.CASCADE, related_name="axis_clearances", db_index=False)
    bundle_sha256 = models.CharField(max_length=64)
    axis = models.CharField(max_length=60)
    comment = models.CharField(max_length=500)
    user = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AxisClearanceQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["scenario", "bundle_sha256", "axis"], name="axis_cleared_once"),
        ]

    def __str__(self) -> str:
        return f"{self.axis} of scenario {self.scenario_id}"
