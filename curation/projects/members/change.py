"""Who works on a project: add, change a role, remove. A project always keeps an admin."""

from collections.abc import Callable

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Member, Project, Role, Scope
from curation.web.problems import Conflict, FieldError, Invalid, NotFound


def add_member(*, access: Access, username: str, role: str) -> Member:
    """`Invalid` for an unknown user or role, `Conflict` for someone who is a member already."""
    access.require(Scope.ADMIN)
    _refuse_unknown_role(role)
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        known = f"There is no active user {username!r}; an administrator of the server makes accounts."
        raise Invalid(known, errors=[FieldError("username", "no such user")])
    try:
        with transaction.atomic():
            member = Member.objects.create(project=access.project, user=user, role=role)
            _record(access, "member.add", username, {"role": role})
    except IntegrityError:
        raise Conflict(f"{username} is a member already; change the role instead.", code="already_member") from None
    return member


def change_role(*, access: Access, username: str, role: str) -> Member:
    access.require(Scope.ADMIN)
    _refuse_unknown_role(role)

    def change(member: Member) -> None:
        before, member.role = member.role, role
        if before != role:
            member.save(update_fields=["role"])
            _record(access, "member.change", username, {"role": [before, role]})

    return _with_member(access, username, keeps_admin=role == Role.ADMIN, change=change)


def remove_member(*, access: Access, username: str) -> None:
    """Takes the membership away. What the person decided and launched stays, under their name."""
    access.require(Scope.ADMIN)

    def remove(member: Member) -> None:
        member.delete()
        _record(access, "member.remove", username, {"role": member.role})

    _with_member(access, username, keeps_admin=False, change=remove)


def _with_member(access: Access, username: str, *, keeps_admin: bool, change: Callable[[Member], None]) -> Member:
    with transaction.atomic():
        # The project's row is the lock: two admins who remove each other at once come one after the other.
        project = Project.objects.select_for_update().get(pk=access.project.pk)
        member = project.members.select_related("user").filter(user__username=username).first()
        if member is None:
            raise NotFound(f"{username!r} is not a member of {project.slug}.")
        if not keeps_admin and member.role == Role.ADMIN and project.members.filter(role=Role.ADMIN).count() == 1:
            raise Conflict(
                f"{username} is the last admin of {project.slug}; make someone else admin first.", code="last_admin"
            )
        change(member)
    return member


def _refuse_unknown_role(role: str) -> None:
    if role not in Role.values:
        known = ", ".join(Role.values)
        raise Invalid(f"Unknown role {role!r}; there are {known}.", errors=[FieldError("role", f"one of {known}")])


def _record(access: Access, action: str, username: str, data: dict[str, object]) -> None:
    record(actor=access.user, project=access.project, action=action, subject=username, data=data)
