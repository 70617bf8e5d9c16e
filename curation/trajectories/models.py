"""Trajectories; their texts, replays and pairs have tables of their own."""

from collections.abc import Collection, Iterable
from typing import ClassVar

from django.db import models

from curation.projects.models import Blocker, Project
from curation.runs.models import DependsOnRun, Run
from curation.samples.models import Sample
from curation.scenarios.models import MACHINE_OUTCOMES, Scenario, Terminal
from curation.web.text.markup import with_signs


class Outcome(models.TextChoices):
    """How an episode ended. Two outcomes are kept; `timeout` and `infra_error` are never rejected sides of pairs."""

    SOLVED = "solved", "Solved"
    CORRECT_PANIC = "correct_panic", "Correct panic"
    WRONG_TERMINAL = "wrong_terminal", "Wrong terminal"
    CHECKER_FAILED = "checker_failed", "Checker failed"
    NO_TERMINAL = "no_terminal", "No terminal"
    FORMAT_ERROR = "format_error", "Format error"
    TIMEOUT = "timeout", "Timeout"
    INFRA_ERROR = "infra_error", "Infrastructure error"

    @property
    def tone(self) -> str:
        return {"solved": "good", "correct_panic": "good", "timeout": "attention", "infra_error": "attention"}.get(
            self.value, "bad"
        )


KEPT = (Outcome.SOLVED, Outcome.CORRECT_PANIC)
NEVER_NEGATIVE = tuple(map(Outcome, MACHINE_OUTCOMES))


class ReplayState(models.TextChoices):
    NONE = "", "Not replayed"
    AGREES = "agrees", "Replay agrees"
    DIFFERS = "differs", "Replay differs"

    @property
    def tone(self) -> str:
        return {"agrees": "good", "differs": "bad"}.get(self.value, "muted")


READ, ASKED = "documentation_read", "provider_asked"
# The facts of a rollout in `axes`, by the sandbox's record of executed programs. Rows from before it have none.
RECORDED = {READ: "Documentation read", ASKED: "Provider asked"}


class Known(models.TextChoices):
    YES = "yes", "Yes"
    NO = "no", "No"
    UNKNOWN = "unknown", "Unknown"


class TrajectoryQuerySet(models.QuerySet["Trajectory"]):
    def of(self, project: Project) -> "TrajectoryQuerySet":
        return self.filter(project=project)

    def for_list(self) -> "TrajectoryQuerySet":
        return self.select_related("scenario", "sample")

    def with_text(self) -> "TrajectoryQuerySet":
        """With the turns and the checker's output, without the raw messages."""
        return self.select_related("scenario", "sample", "run", "text").defer("text__exchange")

    def to_replay(self) -> "TrajectoryQuerySet":
        """With everything that a replay needs."""
        return self.select_related("scenario__text", "run", "text").defer("text__exchange")

    def with_turns(self) -> "TrajectoryQuerySet":
        """With the turns alone, for comparing many."""
        return self.select_related("text").defer("text__exchange", "text__checker_output")

    def kept(self) -> "TrajectoryQuerySet":
        return self.filter(keep=True)

    def recorded(self, fact: str, known: Collection[str]) -> "TrajectoryQuerySet":
        """Those of which a fact of `RECORDED` is one of these words of `Known`."""
        wanted = models.Q(**{f"axes__{fact}__in": list(known)})
        if Known.UNKNOWN in known:
            wanted |= models.Q(**{f"axes__{fact}__isnull": True})
        return self.filter(wanted)

    def outcome_counts(self) -> dict[str, int]:
        return dict(self.order_by().values_list("outcome").annotate(n=models.Count("id")))

    def siblings_of(self, trajectory: "Trajectory") -> "TrajectoryQuerySet":
        """The other trajectories of its scenario or task, the oldest first."""
        return self.of_subject(trajectory.project_id, trajectory.scenario_id, trajectory.task).exclude(pk=trajectory.pk)

    def of_subject(self, project_id: int, scenario_id: int | None, task: str) -> "TrajectoryQuerySet":
        """Those of one scenario, or without one those of one task of a server."""
        of = self.filter(project=project_id)
        rows = of.filter(scenario=scenario_id) if scenario_id else of.filter(scenario=None, task=task)
        return rows.order_by("id")


class Trajectory(DependsOnRun):
    """One rollout of one model through one scenario; `bundle_sha256` is of the bundle at that time.

    An episode on a server has no scenario but an `environment` and a `task`; its `bundle_sha256` is
    of the server's description of the task, its `item_key` is that of the item that played it.

    A rollout's `axes` come from the sandbox's record (`rollout/asked.py`); its scenario has the others.

    `seconds` is the time of its commands; `repeated_share` (0–1) and `longest_repeat` are the loop check.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="trajectories", db_index=False)
    scenario = models.ForeignKey(Scenario, models.CASCADE, null=True, related_name="trajectories", db_index=False)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="trajectories")
    sample = models.OneToOneField(Sample, models.SET_NULL, null=True, related_name="trajectory")
    sample_index = models.PositiveSmallIntegerField(default=0)
    model = models.CharField(max_length=60, help_text="Name of the endpoint.")
    instructions_hash = models.CharField(max_length=64, blank=True, default="")
    bundle_sha256 = models.CharField(max_length=64)
    backend = models.CharField(max_length=20, blank=True, default="")
    environment = models.CharField(max_length=300, blank=True, default="")
    task = models.CharField(max_length=200, blank=True, default="")
    item_key = models.CharField(max_length=120, blank=True, default="")
    axes = models.JSONField(default=dict, help_text="Of an episode on a server; a rollout has its scenario's.")
    terminal = models.CharField(max_length=5, choices=Terminal, blank=True, default="")
    panic_reason = models.CharField(max_length=1000, blank=True, default="")
    outcome = models.CharField(max_length=14, choices=Outcome)
    keep = models.BooleanField(default=False)
    checker_passed = models.BooleanField(null=True, help_text="None where the checker did not run.")
    commands = models.PositiveIntegerField(default=0)
    repeated_share = models.FloatField(default=0.0)
    longest_repeat = models.PositiveIntegerField(default=0)
    format_errors = models.PositiveIntegerField(default=0)
    tokens = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    replay = models.CharField(max_length=7, choices=ReplayState, blank=True, default=ReplayState.NONE)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TrajectoryQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "scenario", "sample_index"], name="trajectory_once"),
        ]
        indexes: ClassVar = [
            # The list in each order, its tabs by outcome, a scenario's siblings.
            models.Index(fields=["project", "id"], name="trajectory_list"),
            models.Index(fields=["project", "commands", "id"], name="trajectory_list_commands"),
            models.Index(fields=["project", "outcome", "id"], name="trajectory_list_outcome"),
            models.Index(fields=["scenario", "id"], name="trajectory_by_scenario"),
            # Siblings and pairs of a server's task.
            models.Index(
                fields=["project", "task", "id"], name="trajectory_by_task", condition=models.Q(scenario__isnull=True)
            ),
            # The coverage heatmap counts the kept ones of each scenario from the index alone.
            models.Index(fields=["scenario"], name="trajectory_kept", condition=models.Q(keep=True)),
        ]

    def __str__(self) -> str:
        return f"trajectory {self.pk}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        """Trajectories through imported scenarios are deleted with the import (`Decision` keeps the decided ones)."""
        through = 0 if run.kind == "import" else cls.objects.filter(scenario__run=run).exclude(run=run).count()
        text = "Trajectories of other runs through its scenarios: {}."
        return run.blocked_by(through, text, "trajectory-list")

    @classmethod
    def deleted_with(cls, run: Run) -> "models.QuerySet[Trajectory]":
        """Those whose sample is gone."""
        own = models.Q(run=run) | models.Q(scenario__run=run) if run.kind == "import" else models.Q(run=run)
        return cls.objects.filter(own, project=run.project_id, sample=None)

    @property
    def scenario_name(self) -> str:
        """For pages: a name from a model or a file may contain characters that reorder or hide text."""
        return with_signs(self.subject)

    @property
    def subject(self) -> str:
        """The name of the scenario, or the task of a server."""
        return self.scenario.name if self.scenario else self.task

    @property
    def labels(self) -> dict[str, object]:
        """The scenario's axes, and the facts of a rollout or the axes of an episode on a server."""
        return {**(self.scenario.axes if self.scenario else {}), **self.axes}

    @property
    def call_items(self) -> dict[str, str]:
        """The stage and the key of the item whose calls made it."""
        if self.scenario_id is None:
            return {"stage": "episodes", "key": self.item_key}
        return {"stage": "rollout", "key": f"{self.scenario_id}:{self.sample_index}"}

    @property
    def outcome_tone(self) -> str:
        return Outcome(self.outcome).tone

    @property
    def is_machine_failure(self) -> bool:
        """The machine failed, not the model, so it is an example of nothing."""
        return self.outcome in NEVER_NEGATIVE

    @property
    def replay_tone(self) -> str:
        return ReplayState(self.replay).tone


class TrajectoryText(models.Model):
    """`turns` in deploy format: `[{kind: orientation | action | output, text, prompt, exit_code, seconds, truncated}]`.

    The text of an orientation or output ends with the terminal's next prompt, which `prompt` repeats.

    `exchange` has the raw messages to and from the model, with the instructions and prose. It is for audit and never
    exported.
    """

    trajectory = models.OneToOneField(Trajectory, models.CASCADE, primary_key=True, related_name="text")
    turns = models.JSONField()
    checker_output = models.TextField(blank=True, default="")
    exchange = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"text of trajectory {self.trajectory_id}"


class Replay(DependsOnRun):
    """One run of a trajectory's commands in a fresh sandbox. `differences`: `[{turn, what, recorded, replayed}]`."""

    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="replays")
    run = models.ForeignKey(Run, models.SET_NULL, null=True)
    agrees = models.BooleanField()
    differences = models.JSONField(default=list)
    backend = models.CharField(max_length=20, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"replay of trajectory {self.trajectory_id}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        of_it = cls.objects.filter(trajectory__run=run).exclude(run=run)
        text, query = "Replays by other runs of its trajectories: {}.", f"?run={run.pk}"
        yield from run.blocked_by(of_it.count(), text, "trajectory-list", query)
        by_it = cls.objects.filter(run=run).exclude(trajectory__run=run)
        yield from run.blocked_by(by_it.count(), "Trajectories of other runs that it replayed: {}.", "trajectory-list")


class Strategy(models.TextChoices):
    FIRST_DIVERGENCE = "first_divergence", "First divergence"
    WHOLE_TRAJECTORY = "whole_trajectory", "Whole trajectory"


class PairQuerySet(models.QuerySet["Pair"]):
    def of(self, project: Project) -> "PairQuerySet":
        return self.filter(project=project)

    def for_list(self) -> "PairQuerySet":
        return self.select_related("scenario", "chosen", "rejected")


class Pair(DependsOnRun):
    """A kept trajectory against a rejected one of the same scenario, or of the same task of a server.

    `at` is the index of the first differing action in the `turns` of both; the turns before it are the prompt.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="pairs")
    run = models.ForeignKey(Run, models.CASCADE, null=True)
    scenario = models.ForeignKey(Scenario, models.CASCADE, null=True, related_name="pairs")
    chosen = models.ForeignKey(Trajectory, models.CASCADE, related_name="pairs_as_chosen")
    rejected = models.ForeignKey(Trajectory, models.CASCADE, related_name="pairs_as_rejected")
    strategy = models.CharField(max_length=16, choices=Strategy, default=Strategy.FIRST_DIVERGENCE)
    at = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PairQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chosen", "rejected", "strategy"], name="pair_once"),
        ]
        # The list.
        indexes: ClassVar = [models.Index(fields=["project", "id"], name="pair_list")]

    def __str__(self) -> str:
        return f"pair {self.chosen_id} over {self.rejected_id}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        pairs = cls.objects.filter(models.Q(chosen__run=run) | models.Q(rejected__run=run)).exclude(run=run)
        return run.blocked_by(pairs.count(), "Pairs of other runs that use its trajectories: {}.", "pair-list")

    @property
    def scenario_name(self) -> str:
        """For pages, as `Trajectory.scenario_name`."""
        return with_signs(self.subject)

    @property
    def subject(self) -> str:
        return self.scenario.name if self.scenario else self.chosen.task
