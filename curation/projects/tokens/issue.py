"""API tokens: made, shown once, checked by their hash."""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from curation.projects.access import Principal
from curation.projects.audit import record
from curation.projects.models import Scope, Token
from curation.web.ids import find
from curation.web.prepared import Prepared
from curation.web.problems import FieldError, Invalid, NotAllowed

USED_EVERY = timedelta(minutes=1)
MAX_DAYS = 3650


@dataclass(frozen=True, slots=True)
class NewToken:
    """The row, and the secret that is shown this once."""

    row: Token
    secret: str


def create_token(
    *, user: User, scopes: Collection[str], name: str = "", expires_at: datetime | None = None
) -> NewToken:
    unknown = sorted(set(scopes) - set(Scope.values))
    if unknown or not scopes:
        known = ", ".join(Scope.values)
        raise Invalid(
            f"Unknown scope {', '.join(unknown) or '(none given)'}; there are {known}.",
            errors=[FieldError("scopes", f"one or more of {known}")],
        )
    if len(name) > 80:
        raise Invalid("A token's name has at most 80 characters.", errors=[FieldError("name", "too long")])
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("The token would expire in the past.", errors=[FieldError("expires_at", "lies in the past")])
    secret = f"wn_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        row = Token.objects.create(
            user=user,
            name=name,
            prefix=secret[:8],
            digest=_digest(secret),
            scopes=sorted(set(scopes)),
            expires_at=expires_at,
        )
        record(actor=user, action="token.create", subject=row.prefix, data={"name": name, "scopes": row.scopes})
    return NewToken(row, secret)


def create_token_as(
    principal: Principal, *, scopes: Collection[str], name: str = "", expires_in_days: int | None = None
) -> NewToken:
    """A token of the caller's own. `NotAllowed` for scopes that the caller's credential does not have itself."""
    beyond = sorted(set(scopes) & set(Scope.values) - principal.scopes)
    if beyond:
        raise NotAllowed(f"Your credential lacks the scope {', '.join(beyond)}, so it cannot hand it on.")
    expires_at = None
    if expires_in_days is not None:
        if not 1 <= expires_in_days <= MAX_DAYS:
            reason = f"A token lives 1 to {MAX_DAYS} days, or without end."
            raise Invalid(reason, errors=[FieldError("expires_in_days", f"1 to {MAX_DAYS}")])
        expires_at = timezone.now() + timedelta(days=expires_in_days)
    return create_token(user=principal.user, scopes=scopes, name=name, expires_at=expires_at)


def revoke_token(principal: Principal, token_id: str) -> None:
    """Ends one of the caller's own tokens at once. A credential cannot end a token that may do more than itself."""
    row = find(Token.objects.filter(user=principal.user), token_id, "token")
    beyond = sorted(set(row.scopes) - principal.scopes)
    if beyond:
        raise NotAllowed(f"Your credential lacks the scope {', '.join(beyond)} of this token.")
    with transaction.atomic():
        row.delete()
        record(actor=principal.user, action="token.revoke", subject=row.prefix, data={"name": row.name})


def check_token(secret: str) -> Token | None:
    """The live token with this secret; notes its use at most once a minute."""
    row = _live.first(digest=_digest(secret))
    now = timezone.now()
    if row is None or (row.expires_at is not None and row.expires_at <= now):
        return None
    if row.last_used_at is None or now - row.last_used_at > USED_EVERY:
        Token.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


def _by_digest(digest: str) -> QuerySet[Token]:
    return Token.objects.select_related("user").filter(digest=digest, user__is_active=True)[:1]


# Every call of the API begins with it.
_live = Prepared(_by_digest, digest=str)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
