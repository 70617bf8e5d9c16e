"""The second step of sign-in, and the page where a person turns the second factor on and off."""

import time

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from curation.projects.access import principal_of
from curation.projects.second_factor.devices import (
    VERIFIED,
    WRONG,
    confirm,
    has_second_factor,
    open_enrolment,
    renew_codes,
    turn_off,
    verify,
)
from curation.web.forms import ProblemForm
from curation.web.problems import NotAllowed

PENDING = "second_factor_pending"
PENDING_SECONDS = 10 * 60


class CodeForm(ProblemForm):
    code = forms.CharField(
        max_length=20,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "autofocus": True, "spellcheck": "false"}),
    )


def ask_for_code(request: HttpRequest, user: User, after: str) -> HttpResponse:
    """The password was right: nobody is signed in until the code is too."""
    pending = {"user": user.pk, "backend": getattr(user, "backend", ""), "hash": user.get_session_auth_hash()}
    request.session[PENDING] = {**pending, "after": after, "at": time.time()}
    return redirect("second-factor-code")


@never_cache
@require_http_methods(["GET", "POST"])
def second_factor_code(request: HttpRequest) -> HttpResponse:
    pending = request.session.get(PENDING, {})
    user = User.objects.filter(pk=pending.get("user"), is_active=True).first()
    fresh = time.time() - pending.get("at", 0) < PENDING_SECONDS
    if user is None or not fresh or pending["hash"] != user.get_session_auth_hash():
        request.session.pop(PENDING, None)
        messages.error(request, "Sign in again: the code was not entered in time.")
        return redirect("login")
    form = CodeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if verify(user, form.cleaned_data["code"]):
            request.session.pop(PENDING)
            login(request, user, backend=pending["backend"])
            request.session[VERIFIED] = True
            return redirect(pending["after"])
        form.add_error("code", WRONG)
    return render(request, "projects/second_factor/code.html", {"form": form})


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def second_factor(request: HttpRequest) -> HttpResponse:
    """Set the second factor up; when it is on: new recovery codes, or turn it off."""
    user = principal_of(request).user
    form = CodeForm(request.POST or None)
    codes: list[str] = []
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            codes = _change(request, user, form.cleaned_data["code"])
            form = CodeForm()
    context = {"form": form, "codes": codes, "required": settings.SECOND_FACTOR == "required"}
    context["is_on"] = has_second_factor(user)
    if not context["is_on"]:
        import segno  # only this page draws one

        device = open_enrolment(user)
        context["qr"] = segno.make(device.config_url).svg_data_uri(scale=4, border=2, light="white")
        context["key"] = device.config_url.partition("secret=")[2].partition("&")[0]
    return render(request, "projects/second_factor/page.html", context, status=201 if codes else form.status)


def _change(request: HttpRequest, user: User, code: str) -> list[str]:
    if "off" in request.POST:
        if settings.SECOND_FACTOR == "required":
            raise NotAllowed("This server requires a second factor. Ask its operator if you lost yours.")
        turn_off(user, code)
        messages.success(request, "The second factor is off.")
        return []
    codes = renew_codes(user, code) if has_second_factor(user) else confirm(user, code)
    request.session[VERIFIED] = True
    return codes
