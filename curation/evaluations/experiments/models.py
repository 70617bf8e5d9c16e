"""Experiment cards: the model trained on an export, and the changes expected of it."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from curation.projects.models import Project


class Experiment(models.Model):
    """Training on an export: its settings, the base and the trained model as evaluated, and expected changes by metric.
    `manifest_sha256` is the export's when the card was written, and stays if the export is deleted."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="experiments")
    name = models.CharField(max_length=120)
    export = models.ForeignKey("exports.Export", models.SET_NULL, null=True, related_name="experiments")
    manifest_sha256 = models.CharField(max_length=64, blank=True, default="")
    training = models.TextField(blank=True, default="")
    base = models.ForeignKey("evaluations.EvaluatedModel", models.SET_NULL, null=True, related_name="+")
    trained = models.ForeignKey("evaluations.EvaluatedModel", models.SET_NULL, null=True, related_name="+")
    expected = models.JSONField(default=dict)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # The list of experiments, newest first.
        indexes: ClassVar = [models.Index(fields=["project", "-id"], name="experiment_by_project")]

    def __str__(self) -> str:
        return self.name
