"""Sign in by an OpenID Connect provider: the code flow with PKCE, by Authlib.

A person is known by issuer and subject. The first sign-in creates an account, or links the one that is signed in.
"""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from curation.projects.audit import record
from curation.projects.members.groups import apply_groups
from curation.projects.models import Identity
from curation.projects.second_factor.require import VERIFIED

logger = logging.getLogger(__name__)
NEXT = "oidc_next"
TIMEOUT_SECONDS = 10
BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignInFailed(Exception):
    """Why nobody was signed in, in words for the person."""


@never_cache
@require_GET
def oidc_start(request: HttpRequest) -> HttpResponse:
    """Send the person to the provider. A link, no form: the site's policy lets forms go to the site only."""
    after = request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(after, {request.get_host()}, require_https=request.is_secure())
    request.session[NEXT] = after if safe else ""
    return _or_sign_in_page(request, lambda: _client().authorize_redirect(request, _return_url(request)))


@never_cache
@require_GET
def oidc_return(request: HttpRequest) -> HttpResponse:
    return _or_sign_in_page(request, lambda: _finish(request))


def _or_sign_in_page(request: HttpRequest, step: Callable[[], HttpResponse]) -> HttpResponse:
    """The step's response; if the provider fails or refuses, the sign-in page says so."""
    if not settings.OIDC_ISSUER:
        raise Http404
    from authlib.common.errors import AuthlibBaseError
    from joserfc.errors import JoseError
    from requests import RequestException

    try:
        return step()
    except SignInFailed as failed:
        messages.error(request, str(failed))
    except (RequestException, AuthlibBaseError, JoseError, ValueError, KeyError) as error:
        logger.warning("sign-in by %s failed: %s: %s", settings.OIDC_ISSUER, type(error).__name__, error)
        messages.error(
            request, f"Sign-in with {settings.OIDC_NAME} failed. Try again; the server's log has the reason."
        )
    return redirect("login")


def _finish(request: HttpRequest) -> HttpResponse:
    client = _client()
    algorithms = client.load_server_metadata().get("id_token_signing_alg_values_supported", ["RS256"])
    # Signed by a key of the provider: neither unsigned nor by a shared secret.
    client.server_metadata["id_token_signing_alg_values_supported"] = [
        name for name in algorithms if name[:2] in {"RS", "PS", "ES", "Ed"}
    ]
    options = {
        "iss": {"essential": True, "value": settings.OIDC_ISSUER},
        "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
        "sub": {"essential": True},
    }
    token = client.authorize_access_token(request, claims_options=options)
    if "userinfo" not in token:
        raise SignInFailed(f"{settings.OIDC_NAME} sent no ID token. Its client needs the scope openid.")
    claims = _with_userinfo(client, token)
    groups = _groups(claims)
    after = request.session.pop(NEXT, "")
    with transaction.atomic():
        user = _user_of(request, claims)
        apply_groups(user, groups)
    login(request, user, backend=BACKEND)
    request.session[VERIFIED] = True
    return redirect(after or settings.LOGIN_REDIRECT_URL)


@lru_cache(maxsize=1)
def _client_of(issuer: str, client_id: str, secret: str, scopes: str) -> Any:
    # Imported here: a process that signs nobody in starts without it.
    from authlib.integrations.django_client import OAuth

    return OAuth().register(
        "oidc",
        client_id=client_id,
        client_secret=secret or None,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        # The access token is used at once, so also one that is valid for less than a minute.
        client_kwargs={
            "scope": scopes,
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_SECONDS,
            "leeway": 0,
        },
    )


def _client() -> Any:
    return _client_of(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET, settings.OIDC_SCOPES)


def _return_url(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("oidc-return"))


def _with_userinfo(client: Any, token: Any) -> dict[str, Any]:
    """The claims of the ID token, and those that only the provider's userinfo has."""
    claims = dict(token["userinfo"])
    wanted = (settings.OIDC_USERNAME_CLAIM, settings.OIDC_GROUPS_CLAIM)
    if all(_claim(claims, name) is not None for name in wanted) or "userinfo_endpoint" not in client.server_metadata:
        return claims
    more = dict(client.userinfo(token=token))
    if more.get("sub") != claims["sub"]:
        raise SignInFailed(f"{settings.OIDC_NAME} answered about another person. Sign in again.")
    return more | claims


def _claim(claims: dict[str, Any], name: str) -> Any:
    """The claim of this name, or at this path: `realm_access.roles`."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _groups(claims: dict[str, Any]) -> set[str]:
    """The person's groups; none if the provider names none.

    Raises `SignInFailed` if it leaves them out, or sends them in another form: that must not take roles away.

    Some providers send an object whose keys are the names, such as the roles of Zitadel.
    """
    name = settings.OIDC_GROUPS_CLAIM
    if name in (claims.get("_claim_names") or {}):
        raise SignInFailed(f"{settings.OIDC_NAME} leaves out your groups because they are too many. Tell its operator.")
    found = _claim(claims, name) or []
    groups = [found] if isinstance(found, str) else found
    if not isinstance(groups, list | dict) or not all(isinstance(group, str | int) for group in groups):
        raise SignInFailed(
            f"{settings.OIDC_NAME} sends the claim {name} in a form that names no groups. Tell this server's operator."
        )
    return {str(group) for group in groups}


def _user_of(request: HttpRequest, claims: dict[str, Any]) -> User:
    """The account of this identity. Raises `SignInFailed` if there is none and none can be made."""
    known = {"issuer": settings.OIDC_ISSUER, "subject": str(claims["sub"])}
    identity = Identity.objects.select_related("user").filter(**known).first()
    signed_in = request.user if isinstance(request.user, User) else None
    if identity is not None:
        if not identity.user.is_active:
            raise SignInFailed("Your account is closed. Ask the operator of this server.")
        return identity.user
    if signed_in is None:
        signed_in = _new_user(str(_claim(claims, settings.OIDC_USERNAME_CLAIM) or ""), str(claims.get("email") or ""))
    Identity.objects.create(user=signed_in, **known)
    record(actor=signed_in, action="user.link", subject=signed_in.username, data=known)
    return signed_in


def _new_user(username: str, email: str) -> User:
    user = User(username=username, email=email[:254])
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["email"])
    except ValidationError as error:
        if User.objects.filter(username=username).exists():
            raise SignInFailed(
                f"There is an account {username} already. If it is yours, sign in with its password, "
                f"then open {reverse('oidc-start')} to link it."
            ) from None
        reasons = " ".join(error.messages)
        raise SignInFailed(f"{settings.OIDC_NAME} gives you the name {username!r}. {reasons}") from None
    user.save()
    record(actor=user, action="user.create", subject=username, data={"issuer": settings.OIDC_ISSUER})
    return user
