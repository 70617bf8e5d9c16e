"""Authenticate a request: by the session of a signed-in person, or by a bearer token; REST calls with a session need
CSRF.

The middleware reads the token before anything else responds; two classes pass its result to ninja. Every page of a
signed-in person reads their session and their row.
"""

import hashlib
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from ninja.security import HttpBearer, SessionAuth
from ninja.utils import check_csrf

from curation.projects.access import Principal
from curation.projects.models import Scope, Token
from curation.projects.second_factor.devices import VERIFIED
from curation.web.database.queries import Prepared
from curation.web.http.idempotency import HEADER
from curation.web.http.middleware import CREDENTIAL, Middleware, is_api, is_fragment, refused
from curation.web.problems import CsrfFailed, NotAllowed, NotAuthenticated

_live = Prepared(lambda key, now: Session.objects.filter(session_key=key, expire_date__gt=now), key=str, now=datetime)
_of_id = Prepared(lambda user: User.objects.filter(pk=user), user=int)


class SessionStore(db.SessionStore):
    """`SESSION_ENGINE`."""

    def _get_session_from_db(self) -> Session | None:
        found = _live.first(key=self.session_key or "", now=timezone.now())
        if found is None:
            self._session_key = None
        return found


class Backend(ModelBackend):
    """One of `AUTHENTICATION_BACKENDS`."""

    def get_user(self, user_id: int) -> User | None:
        user = _of_id.first(user=user_id)
        return user if user and self.user_can_authenticate(user) else None


USE_RECORDED_EVERY = timedelta(minutes=1)
PRINCIPAL = "winnow.principal"
NO_CSRF = (
    "A change with a session's cookie needs its CSRF token as `X-CSRFToken`, from a page of this site. "
    "A script sends `Authorization: Bearer wn_…` instead."
)
# Schemes with which a proxy before the site may sign people in; browsers then send them with each page.
OF_PROXIES = ("basic ", "digest ", "negotiate ")
# These have their own token, or none.
OPERATION = frozenset({"/api/v1/health", "/api/v1/ready", "/api/v1/metrics"})
# The pages of a session without a second factor, where it is required.
SETTING_UP = ("second-factor", "second-factor-code", "login", "logout", "oidc-start", "oidc-return")
# Every call with a token makes this query.
_by_hash = Prepared(
    lambda digest: Token.objects.select_related("user").filter(digest=digest, user__is_active=True), digest=str
)


class CredentialMiddleware(Middleware):
    """Refuses a request whose token is unknown, expired or revoked, also beside the cookie of a session. Where
    `SECOND_FACTOR=required`, a session without a second factor reaches nothing but the page to set it up; the provider
    of single sign-on has checks of its own.

    Its result is in `request.META` for ninja (`PRINCIPAL`) and for idempotency keys (`CREDENTIAL`).
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        sent = request.headers.get("Authorization")
        rest = is_api(request)
        if request.path in OPERATION:
            pass
        elif sent is not None and (rest or not sent.lower().startswith(OF_PROXIES)):
            row = token_of(sent)
            if row is None:
                return refused(request, NotAuthenticated("The token is unknown, expired or revoked. Send another one."))
            request.META[PRINCIPAL] = Principal(row.user, frozenset(row.scopes), row)
            request.META[CREDENTIAL] = f"token:{row.pk}"
        elif rest and HEADER in request.headers and request.user.is_authenticated and check_csrf(request) is None:
            request.META[CREDENTIAL] = f"user:{request.user.pk}"
        by_token = rest and PRINCIPAL in request.META
        if settings.SECOND_FACTOR == "required" and not by_token:
            return _without_second_factor(request) or self.get_response(request)
        return self.get_response(request)


def _without_second_factor(request: HttpRequest) -> HttpResponse | None:
    """Refuse a session that was opened without a code; None for others."""
    if not request.user.is_authenticated or request.session.get(VERIFIED):
        return None
    if is_api(request) or is_fragment(request):
        detail = f"Set up your second factor first, at {reverse('second-factor')}."
        return refused(request, NotAllowed(detail, code="second_factor"))
    return None if request.path in {reverse(name) for name in SETTING_UP} else redirect("second-factor")


class BearerToken(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> Principal | None:
        found = request.META.get(PRINCIPAL)
        return found if isinstance(found, Principal) else None


def token_of(sent: str) -> Token | None:
    """The valid token of an `Authorization` header. It is valid no longer than the tokens that made it."""
    scheme, _, secret = sent.partition(" ")
    row = _by_hash.first(digest=hash_of(secret)) if scheme.lower() == "bearer" else None
    now = timezone.now()
    if row is None or any(token.has_ended(now) for token in row.line()):
        return None
    if row.last_used_at is None or now - row.last_used_at > USE_RECORDED_EVERY:
        Token.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


class BrowserSession(SessionAuth):
    def __call__(self, request: HttpRequest) -> Principal | None:
        # Check the session first: a request without one needs credentials, and no CSRF token would help it.
        if not isinstance(request.user, User):
            return None
        if check_csrf(request) is not None:
            raise CsrfFailed(NO_CSRF)
        return Principal(request.user, frozenset(Scope))


AUTH = [BearerToken(), BrowserSession()]


def hash_of(secret: str) -> str:
    """The SHA-256 by which a token is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()
