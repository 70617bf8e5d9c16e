"""Where `SECOND_FACTOR=required`, a session without a second factor reaches nothing but the page to set it up.

The provider of single sign-on has checks of its own, and a token is a credential of its own.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from curation.projects.tokens.auth import PRINCIPAL
from curation.web.http.middleware import Middleware, is_api, refused
from curation.web.problems import NotAllowed

# In the session: it was opened with a code or by the provider.
VERIFIED = "second_factor_verified"
OPEN = ("second-factor", "second-factor-code", "login", "logout", "oidc-start", "oidc-return")


class SecondFactorMiddleware(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponse:
        by_token = is_api(request) and PRINCIPAL in request.META
        if settings.SECOND_FACTOR != "required" or by_token:
            return self.get_response(request)
        if request.user.is_authenticated and not request.session.get(VERIFIED):
            if is_api(request) or request.headers.get("HX-Request"):
                detail = f"Set up your second factor first, at {reverse('second-factor')}."
                return refused(request, NotAllowed(detail, code="second_factor"))
            if request.path not in {reverse(name) for name in OPEN}:
                return redirect("second-factor")
        return self.get_response(request)
