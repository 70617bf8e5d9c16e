"""Projects, their members, tokens, instructions and audit log. A project is one dataset in the making."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, User
from django.db import models
from django.urls import reverse
from django.utils import timezone

from curation.projects.audit_words import details, said
from curation.projects.settings.document import ProjectSettings, stored_settings
from curation.web.problems import Conflict, Gone, Problem


class Role(models.TextChoices):
    VIEWER = "viewer", "Viewer"
    REVIEWER = "reviewer", "Reviewer"
    CURATOR = "curator", "Curator"
    ADMIN = "admin", "Admin"


class Scope(models.TextChoices):
    """A permission of a token. A role includes some of these scopes (`SCOPES_OF_ROLE`)."""

    READ = "read", "Read"
    REVIEW = "review", "Review"
    RUN = "run", "Launch runs"
    EXPORT = "export", "Export"
    ADMIN = "admin", "Administer"


SCOPES_OF_ROLE: dict[str, frozenset[str]] = {
    Role.VIEWER: frozenset({Scope.READ}),
    Role.REVIEWER: frozenset({Scope.READ, Scope.REVIEW}),
    Role.CURATOR: frozenset({Scope.READ, Scope.REVIEW, Scope.RUN, Scope.EXPORT}),
    Role.ADMIN: frozenset(Scope),
}


class Blocker(NamedTuple):
    """Rows that keep a row from being deleted: `text` has their noun and count, `url` shows them."""

    text: str
    url: str


class Removable(models.Model):
    """A row that can be archived (hidden from lists by default) and deleted, which takes a while (`removal/`).

    Its deletion follows the `on_delete` of the foreign keys to it: CASCADE deletes the rows that reference it, SET_NULL
    keeps them, RESTRICT keeps both.
    """

    archived_at = models.DateTimeField(null=True, editable=False)
    deleting_at = models.DateTimeField(null=True, editable=False, help_text="Since then it answers as deleted.")

    class Meta:
        abstract = True

    @property
    def label(self) -> str:
        return f"{self._meta.model_name} {self.pk}"

    def blockers(self) -> Iterable[Blocker]:
        return ()

    def dependents(self) -> Iterable[models.QuerySet[Any]]:
        """Return the rows to delete before it, besides those that reference it with CASCADE."""
        return ()

    def stop(self) -> bool:
        """Stop the work on it. Return False while something still works."""
        return True

    def audit_data(self) -> dict[str, object]:
        return {}


class ProjectQuerySet(models.QuerySet["Project"]):
    def visible_to(self, user: AbstractBaseUser) -> "ProjectQuerySet":
        """The projects that this user is a member of, all for a superuser; without those that are being deleted."""
        return self.kept() if getattr(user, "is_superuser", False) else self.of_member(user.pk)

    def of_member(self, user_id: int) -> "ProjectQuerySet":
        return self.kept().filter(members__user_id=user_id)

    def kept(self) -> "ProjectQuerySet":
        return self.filter(deleting_at=None)

    def archived(self, wanted: bool) -> "ProjectQuerySet":
        return self.filter(archived_at__isnull=not wanted)


class Project(Removable):
    slug = models.CharField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    guidelines = models.TextField(blank=True, default="", help_text="Guidelines for reviewers, in Markdown.")
    settings_json = models.JSONField(default=dict, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["slug"]

    def __str__(self) -> str:
        return self.name

    @property
    def settings(self) -> ProjectSettings:
        return stored_settings(json.dumps(self.settings_json))

    def stop(self) -> bool:
        return self.runs.all().stop()

    def require_writable(self) -> None:
        """Raise `Gone` while the project is being deleted, `Conflict` while it is archived."""
        if self.deleting_at is not None:
            raise Gone(f"The project {self.name} is being deleted.", code="project_deleted")
        if self.archived_at is not None:
            raise Conflict(
                f"The project {self.name} is archived: it can be read, but not changed. An admin can unarchive it.",
                code="project_archived",
            )


class RemovableRow(Removable):
    project = models.ForeignKey(Project, models.CASCADE, related_name="%(class)ss")

    class Meta:
        abstract = True

    def blocked_by(self, number: int, text: str, page: str, query: str = "", *, plural: str = "") -> Iterator[Blocker]:
        """Yield a blocker unless `number` is 0. It replaces `{}` in `text`, or in `plural` if it is more than 1; `page`
        is the name of the list that shows the rows."""
        if number:
            text = plural if plural and number > 1 else text
            yield Blocker(text.format(f"{number:,}"), reverse(page, args=[self.project.slug]) + query)


class MemberQuerySet(models.QuerySet["Member"]):
    def listed(self, project: Project) -> "MemberQuerySet":
        """A project's members with their users, by name."""
        return self.filter(project=project).select_related("user").order_by("user__username")


class Member(models.Model):
    project = models.ForeignKey(Project, models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    by_groups = models.BooleanField(default=False, help_text="The role came with groups of the provider at sign-in.")
    local_role = models.CharField(
        max_length=10, choices=Role, blank=True, default="", help_text="The role that groups replaced, if any."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MemberQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "user"], name="member_once")]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class Identity(models.Model):
    """A user's identity at an OpenID Connect provider. Neither a name nor an address links an account, only
    `subject`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def pending(self) -> "InvitationQuerySet":
        """Those that can be accepted; none of a person whose account is closed."""
        open_ = self.filter(accepted_at=None, expires_at__gt=timezone.now(), project__deleting_at=None)
        return open_.filter(invited_by__is_active=True)

    def waiting_for(self, user: AbstractBaseUser) -> "InvitationQuerySet":
        return self.pending().filter(username=user.get_username()).select_related("project", "invited_by")


class Invitation(models.Model):
    """An offer to become a member. Only the SHA-256 of its secret is stored; the link is shown once.

    With a `username`, only the user of that name can accept it, with or without the link. Whether such a user exists
    is not looked up.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role)
    username = models.CharField(max_length=150, blank=True, default="")
    note = models.CharField(max_length=200, blank=True, default="", help_text="Whom it is for, for the admins.")
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="invitations_made")
    expires_at = models.DateTimeField()
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    accepted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-id"]
        # The home page looks for invitations by the user's name.
        indexes: ClassVar = [
            models.Index(fields=["username"], name="invitation_by_name", condition=~models.Q(username=""))
        ]

    def __str__(self) -> str:
        return f"invitation {self.pk}"

    @property
    def state(self) -> str:
        if self.accepted_at is not None:
            return "accepted"
        is_over = self.expires_at <= timezone.now() or not self.invited_by.is_active
        return "expired" if is_over else "pending"


class Token(models.Model):
    """An API token. Only its SHA-256 is stored; the token itself is shown once, when it is created."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80, blank=True, default="")
    prefix = models.CharField(max_length=12, help_text="First characters, to tell tokens apart.")
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField(null=True, blank=True)
    parent = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        related_name="made",
        help_text="The token that made it: they end together.",
    )
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.prefix}…"

    def line(self) -> "Iterator[Token]":
        """The token, the one that made it, and so on to the one that a person made."""
        token: Token | None = self
        while token is not None:
            yield token
            token = Token.objects.select_related("user").get(pk=token.parent_id) if token.parent_id else None

    def has_ended(self, now: datetime) -> bool:
        return not self.user.is_active or (self.expires_at is not None and self.expires_at <= now)


class ServiceAccountQuerySet(models.QuerySet["ServiceAccount"]):
    def listed(self, project: Project) -> "ServiceAccountQuerySet":
        rows = self.filter(project=project).select_related("user", "created_by")
        return rows.prefetch_related("user__memberships")


class ServiceAccount(models.Model):
    """Marks the user of a script. It belongs to one project, has tokens and a role, and never signs in."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="service_account")
    project = models.ForeignKey(Project, models.CASCADE, related_name="service_accounts")
    note = models.CharField(max_length=200, blank=True, default="", help_text="Its purpose.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ServiceAccountQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return self.user.get_username()

    @property
    def role(self) -> str | None:
        roles = [member.role for member in self.user.memberships.all() if member.project_id == self.project_id]
        return roles[0] if roles else None


class InstructionsOverride(models.Model):
    """One version of a project's own text for a stage. The newest is in force.

    A row with `shipped` returns to the text that ships with Winnow; its own `text` is empty.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="instructions")
    name = models.CharField(max_length=40, help_text="The stage's instructions, such as `judge`.")
    version = models.PositiveIntegerField(help_text="Counts from 1 within the project and name.")
    shipped = models.BooleanField(default=False)
    text = models.TextField(blank=True, default="")
    sha256 = models.CharField(max_length=64)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # Its index also finds the newest version.
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="instructions_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class DeletionQuerySet(models.QuerySet["Deletion"]):
    def open(self) -> "DeletionQuerySet":
        return self.filter(finished_at=None)

    def visible_to(self, user: AbstractBaseUser) -> "DeletionQuerySet":
        """Those that the user asked for, and those in projects that the user administers; all for a superuser."""
        if getattr(user, "is_superuser", False):
            return self
        mine = Member.objects.filter(user_id=user.pk, role=Role.ADMIN).values("project_id")
        return self.filter(models.Q(requested_by_id=user.pk) | models.Q(project_id__in=mine))


class Deletion(models.Model):
    """The removal of a project, or of one row of it, with its dependent rows.

    It has no foreign key to the deleted row, so it outlives it. A worker that works on it has its lease.
    """

    noun = models.CharField(max_length=12)
    target_id = models.BigIntegerField()
    project_id = models.BigIntegerField()
    label = models.CharField(max_length=200, help_text="Name of the deleted object.")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    counts = models.JSONField(default=dict, help_text="Deleted rows per table, so far.")
    cost = models.DecimalField(max_digits=16, decimal_places=8, default=0, help_text="Cost of the deleted run.")
    cost_unknown_calls = models.PositiveIntegerField(default=0)
    owner = models.CharField(max_length=32, blank=True, default="")
    lease_until = models.DateTimeField(null=True)
    error = models.CharField(max_length=500, blank=True, default="", help_text="Why the last try stopped.")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    objects = DeletionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-id"]
        # The reaper continues unfinished deletions.
        indexes: ClassVar = [models.Index(fields=["id"], name="deletion_open", condition=models.Q(finished_at=None))]

    def __str__(self) -> str:
        return f"deletion of {self.label}"

    @property
    def rows(self) -> int:
        return sum(self.counts.values())


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    def of(self, project: Project) -> "AuditQuerySet":
        return self.filter(project=project).select_related("actor")

    def actions_known(self) -> list[str]:
        """The actions among the newest 2,000 entries, for a filter's choices."""
        recent = self.order_by("-id").values_list("action", flat=True)[:2000]
        return sorted(set(recent))


class AuditEntry(models.Model):
    """One change, written in its transaction. Entries are never altered."""

    project = models.ForeignKey(Project, models.CASCADE, null=True, related_name="audit_entries")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    action = models.CharField(max_length=60, help_text="noun.verb, such as `model.update`.")
    subject = models.CharField(max_length=200, blank=True, default="", help_text="Object of the change.")
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AuditQuerySet.as_manager()

    class Meta:
        # The audit page of a project, newest first.
        indexes: ClassVar = [models.Index(fields=["project", "-id"], name="audit_by_project")]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"

    def save(
        self,
        force_insert: bool | tuple[models.base.ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        if self.pk is not None:
            raise Problem("The audit log is append-only.", code="append_only")
        super().save(force_insert=force_insert, force_update=force_update, using=using, update_fields=update_fields)

    @classmethod
    def record(
        cls,
        *,
        actor: User | None,
        action: str,
        subject: str = "",
        project: Project | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Add one entry; `actor` is None for changes by the system. Never put secrets into `data`."""
        cls.objects.create(actor=actor, action=action, subject=subject[:200], project=project, data=dict(data or {}))

    @property
    def said(self) -> str:
        return said(self.action)

    @property
    def details(self) -> list[str]:
        return details(self.action, self.data)


class Preferences(models.Model):
    """A person's own settings, on every device. Without a row they have the defaults."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="preferences", primary_key=True)
    keys = models.JSONField(default=dict, help_text="Keys that differ from the defaults, by action.")
    tables = models.JSONField(default=dict, help_text="Layouts (`TableLayout`) by the noun of the rows.")
    density = models.CharField(max_length=10, default="normal")

    def __str__(self) -> str:
        return f"preferences of user {self.pk}"
