"""Link an identity of the provider to the account that is signed in: by a form with the account's password.

The provider's answer alone proves only a sign-in there, possibly by somebody else: a link sent by another person, or a
browser shared by several people, must not give that person the account.
"""

import time
from collections.abc import Collection
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from curation.projects.access import principal_of
from curation.projects.members.change import apply_groups
from curation.projects.models import AuditEntry, Identity
from curation.web.text.storable import printable

# In the session: the identity to link, until it is confirmed.
PENDING = "oidc_link"
PENDING_SECONDS = 300


class LinkForm(forms.Form):
    """With the password, if the account has one."""

    password = forms.CharField(widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}), strip=False)

    def __init__(self, request: HttpRequest, user: User) -> None:
        super().__init__(request.POST or None)
        self._request, self._user = request, user
        if not user.has_usable_password():
            del self.fields["password"]

    def clean_password(self) -> str:
        password = str(self.cleaned_data["password"])
        if authenticate(self._request, username=self._user.get_username(), password=password) != self._user:
            raise forms.ValidationError("This is not your password.")
        return password


def ask_to_link(request: HttpRequest, claims: dict[str, Any], groups: Collection[str], after: str) -> HttpResponse:
    """Remember the identity, and send the person to the form."""
    shown = [str(claims[name]) for name in ("name", "email", "preferred_username") if claims.get(name)]
    request.session[PENDING] = {
        "user": principal_of(request).user.pk,
        "known": {"issuer": settings.OIDC_ISSUER, "subject": str(claims["sub"])},
        "shown": printable(", ".join(shown) or str(claims["sub"]))[:200],
        "groups": sorted(groups),
        "after": after,
        "at": time.time(),
    }
    return redirect("oidc-link")


@never_cache
@require_http_methods(["GET", "POST"])
@login_required
def oidc_link(request: HttpRequest) -> HttpResponse:
    user = principal_of(request).user
    pending = request.session.get(PENDING) or {}
    if pending.get("user") != user.pk or time.time() - pending["at"] > PENDING_SECONDS:
        request.session.pop(PENDING, None)
        messages.error(request, "There is nothing to link any more. Follow Link your account again.")
        return redirect("change-password")
    form = LinkForm(request, user)
    if request.method == "POST" and (not form.fields or form.is_valid()):
        del request.session[PENDING]
        return _link(request, user, pending)
    context = {"form": form, "shown": pending["shown"], "oidc_name": settings.OIDC_NAME}
    return render(request, "registration/link_account.html", context, status=422 if form.errors else 200)


def _link(request: HttpRequest, user: User, pending: dict[str, Any]) -> HttpResponse:
    try:
        with transaction.atomic():
            add_identity(user, pending["known"])
            apply_groups(user, pending["groups"])
    except IntegrityError:
        messages.error(request, "This account of the provider was linked to another account meanwhile.")
        return redirect("change-password")
    messages.success(request, f"Your account is linked to {settings.OIDC_NAME}.")
    return redirect(pending["after"] or "change-password")


def add_identity(user: User, known: dict[str, str]) -> None:
    Identity.objects.create(user=user, **known)
    AuditEntry.record(actor=user, action="user.link", subject=user.username, data=known)
