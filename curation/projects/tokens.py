"""API tokens: made, shown once, checked by their hash."""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from curation.projects.audit import record
from curation.projects.models import Scope, Token
from curation.web.problems import FieldError, Invalid

USED_EVERY = timedelta(minutes=1)


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
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("The token would expire in the past.", errors=[FieldError("expires_at", "lies in the past")])
    secret = f"wn_{secrets.token_urlsafe(32)}"
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


def check_token(secret: str) -> Token | None:
    """The live token with this secret; notes its use at most once a minute."""
    row = Token.objects.select_related("user").filter(digest=_digest(secret), user__is_active=True).first()
    now = timezone.now()
    if row is None or (row.expires_at is not None and row.expires_at <= now):
        return None
    if row.last_used_at is None or now - row.last_used_at > USED_EVERY:
        Token.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
