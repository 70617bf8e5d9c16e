"""Reigns: the contestants that were crowned, one after another."""

from collections.abc import Iterable
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from curation.projects.models import Blocker, Project
from curation.runs.models import DependsOnRun, Run


class Reign(DependsOnRun):
    """A crowned contestant: an endpoint with the instructions and parameters of the answers that won.

    It won as a challenger, with the hidden record; as king it answers blind, with the king's instructions. So it has
    two versions: `fingerprint` is of the answers that won, `king_fingerprint` of its answers as king. Only a run
    against the second is a defence. `target` is the endpoint as it was then: `model`, `api_base` and `params`.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="reigns")
    run = models.ForeignKey(Run, models.RESTRICT, null=True, related_name="reigns", help_text="Whose verdict it was.")
    model = models.CharField(max_length=60, help_text="Name of the endpoint.")
    target = models.JSONField(default=dict)
    instructions_hash = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    king_instructions_hash = models.CharField(max_length=64)
    king_fingerprint = models.CharField(max_length=64)
    margin = models.FloatField(help_text="Points, challenger minus the king before.")
    lcb = models.FloatField(help_text="Points.")
    panels = models.JSONField(default=list, help_text="Digests of the panels that scored the run.")
    crowned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", help_text="Null: by the setting."
    )
    crowned_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    end_reason = models.CharField(max_length=200, blank=True, default="", help_text="Empty: the next king followed.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project"], condition=Q(ended_at=None), name="reign_one_at_a_time")
        ]
        indexes: ClassVar = [models.Index(fields=["project", "id"], name="reign_list")]

    def __str__(self) -> str:
        return f"reign {self.pk} of {self.model}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        """The line of kings rests on the verdicts that made it."""
        return run.blocked_by(run.reigns.all().count(), "Kings that it crowned: {}.", "reign-list")

    @property
    def reigns(self) -> bool:
        return self.ended_at is None
