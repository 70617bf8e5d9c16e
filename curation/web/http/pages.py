"""The requests that a page makes itself, by htmx or fetch: their answers name the user for whom they were made.

A page must not take a sign-in page, or the page of a proxy, for an answer: it would lose the typed text.
"""

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url

from curation.web.http.middleware import Middleware, is_api, refused
from curation.web.problems import CsrfFailed, NotAuthenticated

# In every answer to a page's own request: the id of the signed-in user, or nothing.
USER = "X-Winnow-User"
# Why such a request is refused: `signed-out`, or `csrf` where the page is older than the session.
REFUSED = "X-Winnow-Refused"
SIGNED_OUT, STALE = "signed-out", "csrf"


class FragmentMiddleware(Middleware):
    """Answers 401 to a page's own request where a person would be sent to the sign-in page."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if is_api(request) or not is_fragment(request):
            return response
        is_known = request.user.is_authenticated
        if not is_known and (_is_sign_in(response) or response.get(REFUSED) == STALE):
            response = refused(request, NotAuthenticated("You are signed out. Sign in again to continue."))
            response[REFUSED] = SIGNED_OUT
        response[USER] = str(request.user.pk) if is_known else ""
        return response


def is_fragment(request: HttpRequest) -> bool:
    """Whether a page made the request itself. Browsers tell it, but not to a site without TLS."""
    headers = request.headers
    by_fetch = "X-Requested-With" in headers or headers.get("Sec-Fetch-Dest") == "empty"
    return "HX-Request" in headers or by_fetch or headers.get("Accept", "").startswith("application/json")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The page has the token of an earlier session; its script gets the new one and sends the request again."""
    detail = "You have signed in again since this page was opened. Go back, reload the page, and try again."
    response = refused(request, CsrfFailed(detail))
    response[REFUSED] = STALE
    return response


def _is_sign_in(response: HttpResponse) -> bool:
    sign_in = resolve_url(settings.LOGIN_URL)
    return response.status_code == 302 and urlsplit(response.get("Location", "")).path == sign_in
