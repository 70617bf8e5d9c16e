"""Give a person the roles that their groups at the provider give, at each sign-in.

`OIDC_ROLES` names roles of projects and the groups that give them. A role that it names in a project comes from groups
only: a person gains it with the group and loses it without. Every other role is local and stays; while groups give a
higher one, it waits in `Member.local_role`.
"""

import logging
from collections.abc import Collection, Iterable

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from curation.projects.members.change import revoke_invitations
from curation.projects.models import AuditEntry, Member, Project, Role

logger = logging.getLogger(__name__)
RANKS = {role: rank for rank, role in enumerate(Role.values)}


def apply_groups(user: User, groups: Collection[str]) -> None:
    """Set the user's memberships to those of the groups. The last admin of a project can lose the role too."""
    named = set(settings.OIDC_ROLES)
    former = Member.objects.filter(user=user, by_groups=True).values_list("project__slug", flat=True)
    for slug in sorted(named.union(former)):
        _apply(user, slug, groups)


def _apply(user: User, slug: str, groups: Collection[str]) -> None:
    roles: dict[str, frozenset[str]] = settings.OIDC_ROLES.get(slug, {})
    given = _highest(role for role, of in roles.items() if of.intersection(groups))
    with transaction.atomic():
        project = Project.objects.select_for_update().filter(slug=slug, deleting_at=None).first()
        if project is None:
            logger.warning("OIDC_ROLES names the project %s, which does not exist", slug)
            return
        member = Member.objects.filter(project=project, user=user).first() or Member(project=project, user=user)
        before = member.role
        local = member.local_role if member.by_groups else before
        local = "" if local in roles else local
        member.role = _highest(role for role in (local, given) if role)
        member.by_groups = member.role != local
        member.local_role = local if member.by_groups else ""
        if member.role:
            member.save()
        elif member.pk:
            member.delete()
        if member.role != before:
            _record(member, before, sorted(groups))


def _highest(roles: Iterable[str]) -> str:
    return max(roles, key=RANKS.__getitem__, default="")


def _record(member: Member, before: str, groups: list[str]) -> None:
    data: dict[str, object] = {"role": [before, member.role], "groups": groups}
    if before == Role.ADMIN:
        data["invitations_revoked"] = revoke_invitations(member)
    action = "member.change" if before and member.role else "member.add" if member.role else "member.remove"
    AuditEntry.record(actor=None, project=member.project, action=action, subject=member.user.get_username(), data=data)
