"""Recipes by name, and the exports made from them."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from curation.projects.models import Project
from curation.runs.models import Run


class Recipe(models.Model):
    """A saved recipe: filter, formats, splits, options (`curation.exports.recipe`)."""

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


class Export(models.Model):
    """One artefact. Its state is its run's; its files exist only once all of them are written."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="exports")
    run = models.OneToOneField(Run, models.CASCADE, related_name="export")
    recipe = models.JSONField()
    recipe_name = models.CharField(max_length=80, blank=True, default="")
    counts = models.JSONField(default=dict)
    manifest_sha256 = models.CharField(max_length=64, blank=True, default="")
    ready = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["project", "-id"], name="export_by_project")]

    def __str__(self) -> str:
        return f"export {self.pk}"


class ExportFile(models.Model):
    """One file of an export in storage; `stored_as` is its key there."""

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


class FrozenRow(models.Model):
    """A sample as it stood when the export began: the same recipe on the same frozen rows gives the same bytes."""

    export = models.ForeignKey(Export, models.CASCADE, related_name="frozen")
    sample_id = models.BigIntegerField()
    version = models.PositiveIntegerField()
    revision_id = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["export", "sample_id"], name="frozen_row_once")]

    def __str__(self) -> str:
        return f"{self.sample_id}@{self.version}"
