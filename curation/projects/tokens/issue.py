import secrets
from collections.abc import Collection
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from curation.projects.access import Principal
from curation.projects.models import AuditEntry, Scope, ServiceAccount, Token
from curation.projects.sign_in.backend import hash_of
from curation.web.ids import find
from curation.web.problems import Conflict, FieldError, Invalid, NotAllowed, NotAuthenticated

MAX_NAME = 80
MAX_DAYS = 3650
# Every call with a token reads those before it.
MOST_GENERATIONS = 4


def create_token(
    principal: Principal,
    *,
    scopes: Collection[str],
    name: str = "",
    expires_in_days: int | None = None,
    service: ServiceAccount | None = None,
) -> tuple[Token, str]:
    """Create a token of the caller's own or of a service account; without `expires_in_days` it never expires. Return
    its row and its secret, which is shown only once.

    One that a token makes ends with that token: when it expires, is revoked, or its user may not sign in any more.
    Raises `Invalid` naming each wrong field, `NotAllowed` for scopes that the caller's own credential lacks.
    """
    check_token(scopes=scopes, name=name, expires_in_days=expires_in_days)
    _refuse_wider(principal, scopes)
    secret = f"wn_{secrets.token_urlsafe(32)}"
    expires_at = timezone.now() + timedelta(days=expires_in_days) if expires_in_days else None
    with transaction.atomic():
        parent = _held(principal.token)
        if parent is not None and parent.expires_at is not None:
            expires_at = min(expires_at or parent.expires_at, parent.expires_at)
        row = Token.objects.create(
            user=service.user if service else principal.user,
            name=name,
            prefix=secret[:8],
            digest=hash_of(secret),
            scopes=sorted(set(scopes)),
            expires_at=expires_at,
            parent=parent,
        )
        _record(principal, "token.create", row, service)
    return row, secret


def check_token(*, scopes: Collection[str], name: str, expires_in_days: int | None) -> None:
    """Raise `Invalid` with every field that is wrong."""
    errors = []
    unknown = sorted(set(scopes) - set(Scope.values))
    if unknown or not scopes:
        wrong = f"unknown scope {', '.join(unknown)}" if unknown else "no scope"
        errors.append(FieldError("scopes", f"{wrong}; choose from {', '.join(Scope.values)}"))
    if len(name) > MAX_NAME:
        errors.append(FieldError("name", f"at most {MAX_NAME} characters"))
    if expires_in_days is not None and not 1 <= expires_in_days <= MAX_DAYS:
        errors.append(FieldError("expires_in_days", f"1 to {MAX_DAYS} days, or none for a token that never expires"))
    if errors:
        raise Invalid.fields(errors)


def revoke_token(principal: Principal, token_id: str, *, service: ServiceAccount | None = None) -> None:
    """Revoke a token of the caller's own or of a service account, and those that it has made.

    `NotAllowed` if it has scopes that the caller's credential lacks.
    """
    rows = Token.objects.filter(user=service.user if service else principal.user)
    with transaction.atomic():
        row = find(rows.select_for_update(of=("self",)), token_id, "token")
        _refuse_wider(principal, row.scopes)
        _record(principal, "token.revoke", row, service)
        row.delete()


def _held(parent: Token | None) -> Token | None:
    """The token that makes another one, locked: nobody revokes it meanwhile."""
    if parent is None:
        return None
    held = Token.objects.select_for_update(of=("self",)).filter(pk=parent.pk).first()
    if held is None:
        raise NotAuthenticated("The token that you use was revoked.")
    if len(list(held.line())) > MOST_GENERATIONS:
        raise Conflict(f"Tokens make tokens {MOST_GENERATIONS} times in a row at most.", code="too_many")
    return held


def _record(principal: Principal, action: str, row: Token, service: ServiceAccount | None) -> None:
    """The audit log never has the secret or its hash. The token of a service account is in its project's log."""
    expires = row.expires_at.isoformat() if row.expires_at else None
    data: dict[str, object] = {"name": row.name, "scopes": row.scopes, "expires_at": expires}
    if row.parent:
        data["made_by"] = row.parent.prefix
    if service:
        data["service_account"] = service.user.get_username()
    project = service.project if service else None
    AuditEntry.record(actor=principal.user, project=project, action=action, subject=row.prefix, data=data)


def _refuse_wider(principal: Principal, scopes: Collection[str]) -> None:
    if lacking := sorted(set(scopes) - principal.scopes):
        raise NotAllowed(f"The token you use lacks the scope {', '.join(lacking)}. Use one that has it, or sign in.")
