"""Add and remove a project's members, change their roles, also by the groups that a person has at the provider.

A project always has an admin, but for groups. `OIDC_ROLES` names roles of projects and the groups that give them. A
role that it names in a project comes from groups only: a person gains it with the group and loses it without, at each
sign-in. Every other role is local and stays; while groups give a higher one, it waits in `Member.local_role`.
"""

import logging
from collections.abc import Callable, Collection, Iterable

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from curation.projects.access import Access
from curation.projects.models import AuditEntry, Invitation, Member, Project, Role, Scope, ServiceAccount
from curation.web.problems import Conflict, FieldError, Invalid, NotAllowed, NotFound

logger = logging.getLogger(__name__)
RANKS = {role: rank for rank, role in enumerate(Role.values)}


def may_see_users(user: User) -> bool:
    """Whether the user may learn which usernames exist. Others invite people."""
    return user.is_superuser or user.is_staff


def require_person(user: User) -> None:
    """Raise `Conflict` for a service account: its tokens belong to its project, and must open no other."""
    if account := ServiceAccount.objects.select_related("project").filter(user=user).first():
        detail = (
            f"{user.username} is a service account of {account.project.slug} and can be a member of that project only."
        )
        raise Conflict.at("username", detail, code="service_account")


def add_member(*, access: Access, username: str, role: str) -> Member:
    """Add a user at once, which tells whether the name exists: for staff only.

    Raises `Invalid` for an unknown user or role, `Conflict` for a member and for a service account.
    """
    access.require(Scope.ADMIN)
    if not may_see_users(access.user):
        raise NotAllowed("Only staff add users at once. Invite the person.")
    refuse_unknown_role(role)
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise Invalid.at("username", f"There is no active user {username!r}. A server administrator creates accounts.")
    require_person(user)
    try:
        with transaction.atomic():
            member = Member.objects.create(project=access.project, user=user, role=role)
            access.record("member.add", username, {"role": role})
    except IntegrityError:
        detail = f"{username} is already a member. Change the role in the list instead."
        raise Conflict.at("username", detail, code="already_member") from None
    return member


def member_of(project: Project, username: str) -> Member:
    """Raises `NotFound`."""
    member = project.members.select_related("user").filter(user__username=username).first()
    if member is None:
        raise NotFound(f"{username!r} is not a member of {project.slug}.")
    return member


def change_role(*, access: Access, username: str, role: str) -> Member:
    access.require(Scope.ADMIN)
    refuse_unknown_role(role)

    def change(member: Member) -> None:
        before, member.role = member.role, role
        if before != role:
            member.by_groups, member.local_role = False, ""
            member.save(update_fields=["role", "by_groups", "local_role"])
            data: dict[str, object] = {"role": [before, role]}
            if before == Role.ADMIN:
                data["invitations_revoked"] = revoke_invitations(member)
            access.record("member.change", username, data)

    return _with_member(access, username, keeps_admin=role == Role.ADMIN, change=change)


def remove_member(*, access: Access, username: str) -> None:
    """End a membership. The person's decisions and runs stay, under their name."""
    access.require(Scope.ADMIN)

    def remove(member: Member) -> None:
        if ServiceAccount.objects.filter(user=member.user).exists():
            detail = f"{username} is a service account. Remove it under Service accounts."
            raise Conflict(detail, code="service_account")
        revoked = revoke_invitations(member)
        member.delete()
        access.record("member.remove", username, {"role": member.role, "invitations_revoked": revoked})

    _with_member(access, username, keeps_admin=False, change=remove)


def _with_member(access: Access, username: str, *, keeps_admin: bool, change: Callable[[Member], None]) -> Member:
    with transaction.atomic():
        # Lock the project: two admins who remove each other at the same time must not both succeed.
        project = Project.objects.select_for_update().get(pk=access.project.pk)
        member = member_of(project, username)
        if not keeps_admin and member.role == Role.ADMIN and project.members.filter(role=Role.ADMIN).count() == 1:
            raise Conflict(
                f"{username} is the last admin of {project.slug}. Make another member admin first.", code="last_admin"
            )
        change(member)
    return member


def revoke_invitations(member: Member) -> int:
    """A former admin must not return, or bring others, by a link that they kept."""
    rows = Invitation.objects.pending().filter(project=member.project_id, invited_by=member.user_id)
    return rows.delete()[0]


def refuse_unknown_role(role: str) -> None:
    if role not in Role.values:
        known = ", ".join(Role.values)
        raise Invalid(f"Unknown role {role!r}; roles are {known}.", errors=[FieldError("role", f"one of {known}")])


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
