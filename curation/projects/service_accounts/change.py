"""Create and remove service accounts: admins of the project only, recorded in its audit log."""

import re

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.members.change import refuse_unknown_role
from curation.projects.models import Member, Scope, ServiceAccount, Token
from curation.web.problems import Conflict, FieldError, Invalid, NotFound

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
MAX_ACCOUNTS = 50


def create_service_account(*, access: Access, name: str, role: str, note: str = "") -> ServiceAccount:
    """Create the user `name@project` with a role in the project and without a password.

    Raises `Invalid` for a name or role of another form, `Conflict` for a name that is taken.
    """
    access.require(Scope.ADMIN)
    refuse_unknown_role(role)
    if not NAME.fullmatch(name):
        detail = "Lower-case letters, digits and hyphens, at most 40."
        raise Invalid(detail, errors=[FieldError("name", detail)])
    username = f"{name}@{access.project.slug}"
    try:
        with transaction.atomic():
            if access.project.service_accounts.count() >= MAX_ACCOUNTS:
                raise Conflict(f"A project has at most {MAX_ACCOUNTS} service accounts; remove one.", code="too_many")
            user = User(username=username)
            user.set_unusable_password()
            user.save(force_insert=True)
            Member.objects.create(project=access.project, user=user, role=role)
            made = ServiceAccount.objects.create(
                user=user, project=access.project, note=note[:200], created_by=access.user
            )
            _record(access, "service_account.create", made, {"role": role, "note": made.note})
    except IntegrityError:
        detail = f"The name {username} is taken. Choose another one."
        raise Conflict(detail, code="name_taken", errors=[FieldError("name", detail)]) from None
    return made


def service_account_of(access: Access, username: str) -> ServiceAccount:
    access.require(Scope.ADMIN)
    found = access.project.service_accounts.select_related("user", "project").filter(user__username=username).first()
    if found is None:
        raise NotFound(f"There is no service account {username!r} in {access.project.slug}.")
    return found


def remove_service_account(*, access: Access, username: str) -> None:
    """End its tokens and its membership. Its decisions and runs stay, under its name, which is not given again."""
    account = service_account_of(access, username)
    with transaction.atomic():
        tokens = Token.objects.filter(user=account.user).delete()[0]
        _record(access, "service_account.remove", account, {"tokens_revoked": tokens})
        Member.objects.filter(user=account.user).delete()
        User.objects.filter(pk=account.user_id).update(is_active=False)
        account.delete()


def _record(access: Access, action: str, account: ServiceAccount, data: dict[str, object]) -> None:
    record(actor=access.user, project=access.project, action=action, subject=account.user.username, data=data)
