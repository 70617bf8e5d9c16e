"""How an API call says who it is: a bearer token, or the session's cookie with CSRF."""

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.security import HttpBearer, SessionAuth

from curation.projects.access import Principal
from curation.projects.models import Scope
from curation.projects.tokens.issue import check_token


class BearerToken(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> Principal | None:
        row = check_token(token)
        return Principal(row.user, frozenset(row.scopes)) if row else None


class Session(SessionAuth):
    def authenticate(self, request: HttpRequest, key: str | None) -> Principal | None:
        return Principal(request.user, frozenset(Scope)) if isinstance(request.user, User) else None


AUTH = [BearerToken(), Session(csrf=True)]
