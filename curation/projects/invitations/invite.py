"""Invite people to a project, accept an invitation by the secret of its link or as the invited user, and withdraw it.

An invitation is made without a look-up of its user.
"""

import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from curation.projects.access import Access
from curation.projects.members.change import refuse_unknown_role, require_person
from curation.projects.models import AuditEntry, Invitation, Member, Project, Scope
from curation.projects.sign_in.backend import hash_of
from curation.web.ids import find, id_number
from curation.web.problems import Conflict, FieldError, Invalid, NotFound

DAYS = 7
MAX_DAYS = 90
MAX_NOTE = 200
MAX_USERNAME = 150  # as Django's users


def invite(
    *, access: Access, role: str, username: str = "", note: str = "", expires_in_days: int = DAYS
) -> tuple[Invitation, str]:
    """Create an invitation; with `username`, for the user of that name alone. Return it and its secret, which is shown
    only once.

    Raises `Invalid` naming each wrong field, `Conflict` for the name of a member or of a pending invitation.
    """
    access.require(Scope.ADMIN)
    refuse_unknown_role(role)
    username, note = username.strip(), note.strip()
    errors = []
    if len(username) > MAX_USERNAME or "\x00" in username:
        errors.append(FieldError("username", "is not a username"))
    if len(note) > MAX_NOTE or "\x00" in note:
        errors.append(FieldError("note", f"at most {MAX_NOTE} characters"))
    if not 1 <= expires_in_days <= MAX_DAYS:
        errors.append(FieldError("expires_in_days", f"1 to {MAX_DAYS} days"))
    if errors:
        raise Invalid.fields(errors)
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        # Lock the project: two requests must not both invite a name.
        project = Project.objects.select_for_update().get(pk=access.project.pk)
        if username:
            _refuse_repeated(project, username)
        row = Invitation.objects.create(
            project=project,
            role=role,
            username=username,
            note=note,
            digest=hash_of(secret),
            invited_by=access.user,
            expires_at=timezone.now() + timedelta(days=expires_in_days),
        )
        data = {"role": role, "username": username, "note": note, "expires_at": row.expires_at.isoformat()}
        access.record("invitation.create", str(row.pk), data)
    return row, secret


def revoke_invitation(*, access: Access, invitation_id: str) -> None:
    """Delete an invitation that nobody has accepted. Its link stops working."""
    access.require(Scope.ADMIN)
    with transaction.atomic():
        row = find(
            Invitation.objects.select_for_update().filter(project=access.project, accepted_at=None),
            invitation_id,
            "open invitation",
        )
        access.record("invitation.revoke", str(row.pk), {"role": row.role, "username": row.username, "note": row.note})
        row.delete()


def _refuse_repeated(project: Project, username: str) -> None:
    """The admin sees the lists of members and invitations, so these refusals tell nothing new."""
    if project.members.filter(user__username=username).exists():
        detail = f"{username} is already a member. Change the role in the list instead."
        raise Conflict.at("username", detail, code="already_member")
    if project.invitations.pending().filter(username=username).exists():
        detail = f"{username} is already invited. Revoke that invitation first."
        raise Conflict.at("username", detail, code="already_invited")


GONE = "This invitation does not exist, was used, revoked or has expired, or is for someone else. Ask for a new one."


def invitation_for(user: User, *, secret: str = "", invitation_id: str = "") -> Invitation:
    """Return the pending invitation of a link or, by its id, one for the user's name.

    Every other case is the same `NotFound`.
    """
    rows = Invitation.objects.pending().select_related("project", "invited_by")
    if secret:
        rows = rows.filter(digest=hash_of(secret), username__in=["", user.username])
    else:
        rows = rows.filter(pk=id_number(invitation_id) or 0, username=user.username)
    row = rows.first()
    if row is None:
        raise NotFound(GONE, code="no_invitation")
    return row


def accept_invitation(user: User, *, secret: str = "", invitation_id: str = "") -> Member:
    """Make the user a member, once. Raises `NotFound` as `invitation_for`, `Conflict` for a member and for a service
    account."""
    require_person(user)
    with transaction.atomic():
        row = invitation_for(user, secret=secret, invitation_id=invitation_id)
        row.project.require_writable()
        taken = Invitation.objects.pending().filter(pk=row.pk).update(accepted_by=user, accepted_at=timezone.now())
        if taken != 1:
            raise NotFound(GONE, code="no_invitation")
        member, created = Member.objects.get_or_create(project=row.project, user=user, defaults={"role": row.role})
        if not created:
            raise Conflict(f"You are already a member of {row.project.name}.", code="already_member")
        data = {"role": row.role, "invitation": str(row.pk), "invited_by": row.invited_by.get_username()}
        AuditEntry.record(actor=user, project=row.project, action="invitation.accept", subject=user.username, data=data)
    return member
