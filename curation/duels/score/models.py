"""The scores that runs give to duels, each with its panel."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db import models

from curation.projects.models import Project
from curation.runs.models import DependsOnRun, Run
from curation.samples.models import UNSCORED
from judging.panel.scoring import DuelScore, OrderedVerdict, score_duel


class ScorePanel(DependsOnRun):
    """The rules of a score: judges with their fingerprints, orders, weights, and how many judges a score needs.

    `digest` names them. The project says which panel's scores count (`panel.counting`); by default it is the first one.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="score_panels")
    digest = models.CharField(max_length=12)
    judges = models.JSONField(default=list, help_text="`name` and `fingerprint` of each judge, in the panel's order.")
    orders = models.JSONField(default=list)
    min_judges = models.PositiveSmallIntegerField()
    weights = models.JSONField(null=True, help_text="By dimension; null: all weigh the same.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "digest"], name="score_panel_once")]

    def __str__(self) -> str:
        return self.digest

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint of each judge, empty if it is not known. It covers its model, address, instructions and
        parameters."""
        return {judge["name"]: judge["fingerprint"] for judge in self.judges}

    def score(self, verdicts: Sequence[OrderedVerdict]) -> DuelScore:
        """Return the score of a duel that the verdicts give."""
        return score_duel(
            verdicts,
            panel=list(self.fingerprints),
            orders=self.orders,
            min_judges=self.min_judges,
            weights=self.weights,
        )

    @classmethod
    def deleted_with(cls, run: Run) -> models.QuerySet[Any]:
        """Those without a score, except the one that counts."""
        unused = cls.objects.filter(project=run.project_id, scores=None)
        return unused.exclude(digest=run.project.settings.panel.counting)


class Score(DependsOnRun):
    """The score that one run gave one duel. No other run and no setting changes it.

    `metrics` are the five columns of the report, 0–100. `verdicts` are the ids of the verdicts that made the score,
    `failed` the (judge, order) whose calls failed.
    """

    duel = models.ForeignKey("duels.Duel", models.CASCADE, related_name="scores")
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="scores")
    panel = models.ForeignKey(ScorePanel, models.CASCADE, related_name="scores")
    score = models.FloatField(null=True)
    score_key = models.FloatField(default=UNSCORED, help_text="The score, -1 for none: a keyset needs a value.")
    metrics = models.JSONField(default=dict)
    spread = models.FloatField(default=0.0)
    bucket = models.CharField(max_length=8, help_text="By the thresholds of the run.")
    flags = models.PositiveSmallIntegerField(default=0)
    verdicts = models.JSONField(default=list)
    failed = models.JSONField(default=list)
    scored_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["duel", "run"], name="score_once")]
        indexes: ClassVar = [
            # The duels and samples of a run, and its buckets.
            models.Index(fields=["run", "bucket", "duel"], name="score_by_run"),
            # The newest score of each duel by a panel.
            models.Index(fields=["panel", "duel", "scored_at"], name="score_by_panel"),
        ]

    def __str__(self) -> str:
        return f"score of duel {self.duel_id}"

    @classmethod
    def deleted_with(cls, run: Run) -> models.QuerySet[Any]:
        """A sample that somebody has decided since keeps its score."""
        return cls.objects.filter(run=run).exclude(duel__counting__run=run, duel__sample__isnull=False)
