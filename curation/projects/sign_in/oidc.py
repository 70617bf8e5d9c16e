"""Sign in by an OpenID Connect provider: the code flow with PKCE, by Authlib.

A person is known by issuer and subject. The first sign-in creates an account. To the account that is signed in an
identity is linked by a form with its password (`link`): a link that somebody else made must not do it.
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

from curation.projects.members.change import apply_groups
from curation.projects.models import AuditEntry, Identity
from curation.projects.second_factor.devices import VERIFIED
from curation.projects.sign_in.link import add_identity, ask_to_link
from curation.web.text.storable import printable

logger = logging.getLogger(__name__)
NEXT = "oidc_next"
TIMEOUT_SECONDS = 10
SECRET_SENT = ("client_secret_basic", "client_secret_post")
BACKEND = "curation.projects.sign_in.backend.Backend"


class SignInFailed(Exception):
    """Why nobody was signed in, in words for the person."""


@never_cache
@require_GET
def oidc_start(request: HttpRequest) -> HttpResponse:
    """Send the person to the provider. A link, no form: the site's policy lets forms go to the site only."""
    after = request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(after, {request.get_host()}, require_https=request.is_secure())
    request.session[NEXT] = after if safe else ""
    back = request.build_absolute_uri(reverse("oidc-return"))
    return _or_sign_in_page(request, lambda: _client().authorize_redirect(request, back))


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
        code = printable(str(getattr(error, "error", None) or ""))[:80]  # OAuth's own, such as invalid_client
        why = f" ({code})" if code else ""
        said = f"Sign-in with {settings.OIDC_NAME} failed{why}. Try again; the server's log has the reason."
        messages.error(request, said)
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
        if user is None:
            return ask_to_link(request, claims, groups, after)
        apply_groups(user, groups)
    login(request, user, backend=BACKEND)
    request.session[VERIFIED] = True
    return redirect(after or settings.LOGIN_REDIRECT_URL)


@lru_cache(maxsize=1)
def _client_of(issuer: str, client_id: str, secret: str, scopes: str) -> Any:
    # Imported here: a process that signs nobody in starts without it.
    from authlib.integrations.django_client import OAuth

    # The access token is used at once, so also one that is valid for less than a minute.
    kwargs = {"scope": scopes, "code_challenge_method": "S256", "default_timeout": TIMEOUT_SECONDS, "leeway": 0}
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    return OAuth().register(
        "oidc", client_id=client_id, client_secret=secret or None, server_metadata_url=url, client_kwargs=kwargs
    )


def _client() -> Any:
    """The client, which sends its secret as the provider's token endpoint takes it."""
    secret = settings.OIDC_CLIENT_SECRET
    client = _client_of(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, secret, settings.OIDC_SCOPES)
    # Without the entry a provider takes HTTP Basic (OpenID Connect Discovery 1.0, section 3).
    taken = client.load_server_metadata().get("token_endpoint_auth_methods_supported") or list(SECRET_SENT[:1])
    method = next((name for name in SECRET_SENT if name in taken), None)
    if secret and method is None:
        raise SignInFailed(
            f"{settings.OIDC_NAME} takes the client's secret by {', '.join(map(str, taken))} only. Winnow sends it by "
            f"{' or '.join(SECRET_SENT)}. Tell this server's operator."
        )
    client.client_kwargs["token_endpoint_auth_method"] = method if secret else "none"
    return client


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

    Some providers send an object whose keys are the names, such as the roles of Zitadel. Keycloak sends paths: `/team`
    is `team` too, and `/team/leads` is `team/leads`, but never `leads`, which can be another group.
    """
    name = settings.OIDC_GROUPS_CLAIM
    left_out = claims.get("_claim_names")
    if left_out and (not isinstance(left_out, dict) or name in left_out):
        raise SignInFailed(f"{settings.OIDC_NAME} leaves out your groups because they are too many. Tell its operator.")
    found = _claim(claims, name) or []
    groups = [found] if isinstance(found, str) else found
    if not isinstance(groups, list | dict) or not all(isinstance(group, str | int) for group in groups):
        raise SignInFailed(
            f"{settings.OIDC_NAME} sends the claim {name} in a form that names no groups. Tell this server's operator."
        )
    names = {str(group) for group in groups}
    return names | {name[1:] for name in names if name.startswith("/")}


def _user_of(request: HttpRequest, claims: dict[str, Any]) -> User | None:
    """The account of this identity; None if it has none and a person is signed in: that person has to confirm the link.

    Raises `SignInFailed` if it has no account and none can be made.
    """
    known = {"issuer": settings.OIDC_ISSUER, "subject": str(claims["sub"])}
    identity = Identity.objects.select_related("user").filter(**known).first()
    if identity is not None:
        if not identity.user.is_active:
            raise SignInFailed("Your account is closed. Ask the operator of this server.")
        return identity.user
    if request.user.is_authenticated:
        return None
    email = claims.get("email")
    made = _new_user(_username(claims), email if isinstance(email, str) else "")
    add_identity(made, known)
    return made


def _username(claims: dict[str, Any]) -> str:
    """The name for a new account: the claim for it, or a verified address, as Google sends no name."""
    name = _claim(claims, settings.OIDC_USERNAME_CLAIM)
    if name is None and claims.get("email_verified") is True:
        name = claims.get("email")
    if name is None:
        sent = ", ".join(sorted(printable(str(claim))[:40] for claim in claims)[:30])
        raise SignInFailed(
            f"{settings.OIDC_NAME} sends no {settings.OIDC_USERNAME_CLAIM}, only {sent}. Tell this server's "
            "operator to name one of them in OIDC_USERNAME_CLAIM."
        )
    return str(name)


def _new_user(username: str, email: str) -> User:
    user = User(username=username, email=email[:254])
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["email"])
    except ValidationError as error:
        if User.objects.filter(username=username).exists():
            raise SignInFailed(
                f"There is an account {username} already. If it is yours, sign in with its password, "
                "then follow Link your account on the page Account."
            ) from None
        reasons = " ".join(error.messages)
        raise SignInFailed(f"{settings.OIDC_NAME} gives you the name {username!r}. {reasons}") from None
    user.save()
    AuditEntry.record(actor=user, action="user.create", subject=username, data={"issuer": settings.OIDC_ISSUER})
    return user
