"""Accept an invitation, by the secret of its link or as the user that it names."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from curation.projects.audit import record
from curation.projects.members.change import require_person
from curation.projects.models import Invitation, Member
from curation.projects.tokens.auth import hash_of
from curation.web.ids import id_number
from curation.web.problems import Conflict, NotFound

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
        record(actor=user, project=row.project, action="invitation.accept", subject=user.username, data=data)
    return member
