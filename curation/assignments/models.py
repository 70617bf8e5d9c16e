"""Assignments: which people decide which samples first; targets: how much each person is asked to decide."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from curation.projects.models import SCOPES_OF_ROLE, Member, Project, Scope
from curation.samples.models import Sample

REVIEWING = [role for role, scopes in SCOPES_OF_ROLE.items() if Scope.REVIEW in scopes]


class Assignment(models.Model):
    """Samples that were assigned at once, to one person or to several by shares.

    Until `until` the queue offers them to these people first, and to nobody else, unless `shared`.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="assignments")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    query = models.TextField(blank=True, default="", help_text="The filter, as a URL query; empty for named samples.")
    shared = models.BooleanField(default=False, help_text="The queue offers them to everybody else too.")
    second_opinion = models.BooleanField(default=False, help_text="Somebody asked for a second decision.")
    until = models.DateTimeField(null=True, help_text="From then on they are in everybody's queue; None: no end.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # The list of a project, newest first.
        indexes: ClassVar = [models.Index(fields=["project", "-id"], name="assignment_list")]

    def __str__(self) -> str:
        return f"assignment {self.pk}"


class AssignedSampleQuerySet(models.QuerySet["AssignedSample"]):
    def live(self) -> "AssignedSampleQuerySet":
        """Assignments in force: not expired, and to reviewers with the right to decide."""
        in_time = Q(assignment__until=None) | Q(assignment__until__gt=Now())
        return self.filter(in_time, member__role__in=REVIEWING, member__user__is_active=True)


class AssignedSample(models.Model):
    """One sample assigned to one member. It goes with the membership. Without a member anybody was asked for a second
    opinion."""

    assignment = models.ForeignKey(Assignment, models.CASCADE, related_name="samples")
    sample = models.ForeignKey(Sample, models.CASCADE, related_name="assigned_to", db_index=False)
    member = models.ForeignKey(Member, models.CASCADE, null=True, related_name="assigned_samples")

    objects = AssignedSampleQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["sample", "member"], name="assigned_once")]

    def __str__(self) -> str:
        return f"sample {self.sample_id} of member {self.member_id}"


class Target(models.Model):
    """How many samples a member is asked to decide, a day (UTC) or in all."""

    member = models.OneToOneField(Member, models.CASCADE, related_name="target")
    per_day = models.PositiveIntegerField(null=True)
    total = models.PositiveIntegerField(null=True)

    def __str__(self) -> str:
        return f"target of {self.member_id}"
