"""Authenticate an API call: by a bearer token, or by the session's cookie with CSRF."""

import hashlib
from datetime import timedelta

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer, SessionAuth

from curation.projects.access import Principal
from curation.projects.models import Scope, Token
from curation.web.prepared import Prepared

USE_RECORDED_EVERY = timedelta(minutes=1)
# Every call with a token makes this query.
_by_hash = Prepared(
    lambda digest: Token.objects.select_related("user").filter(digest=digest, user__is_active=True), digest=str
)


class BearerToken(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> Principal | None:
        row = _by_hash.first(digest=hash_of(token))
        now = timezone.now()
        if row is None or (row.expires_at is not None and row.expires_at <= now):
            return None
        if row.last_used_at is None or now - row.last_used_at > USE_RECORDED_EVERY:
            Token.objects.filter(pk=row.pk).update(last_used_at=now)
        return Principal(row.user, frozenset(row.scopes))


class Session(SessionAuth):
    def authenticate(self, request: HttpRequest, key: str | None) -> Principal | None:
        return Principal(request.user, frozenset(Scope)) if isinstance(request.user, User) else None


AUTH = [BearerToken(), Session(csrf=True)]


def hash_of(secret: str) -> str:
    """The SHA-256 by which a token is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()
