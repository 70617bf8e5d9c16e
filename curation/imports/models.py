from typing import ClassVar

from django.conf import settings
from django.db import models

from curation.projects.models import Project


class SavedMapping(models.Model):
    """A mapping of rows (`RowMapping`) under a name, by which later imports choose it."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="mappings")
    name = models.CharField(max_length=100)
    messages = models.CharField(max_length=300, blank=True, default="")
    columns = models.JSONField(default=dict)
    roles = models.JSONField(default=dict)
    outcomes = models.JSONField(default=dict)
    tools = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="mapping_by_name")]

    def __str__(self) -> str:
        return self.name
