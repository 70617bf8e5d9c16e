"""The headers of a page: it is stored nowhere, a form was read, and the user for whom a part of it was made.

A page makes requests itself, by htmx or fetch. It must not take a sign-in page, or the page of a proxy, for an answer:
it would lose the typed text.
"""

import re
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url

from curation.web.http.middleware import Middleware, is_api, refused
from curation.web.ids import number
from curation.web.problems import CsrfFailed, FieldError, NotAuthenticated, Problem

# In every answer to a page's own request: the id of the signed-in user, or nothing.
USER = "X-Winnow-User"
# Why such a request is refused: `signed-out`, or `csrf` where the page is older than the session.
REFUSED = "X-Winnow-Refused"
SIGNED_OUT, STALE = "signed-out", "csrf"
# The browser keeps a copy of a form's typed values until this cookie confirms that the form was read
# (`static/js/kept-forms.js`). It lasts long enough for the page that the form leads to.
COPY_FIELD, COPY_COOKIE, COPY_SECONDS = "winnow_copy", "winnow-copy-", 300
# Set for a request that reached its view: another redirect, such as that to set up a second factor, has read no form.
VIEWED = "winnow.viewed"
_COPY = re.compile(r"[0-9]{1,10}-[0-9]{1,10}")


class PageMiddleware(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        html = response.get("Content-Type", "").startswith("text/html")
        if html and not response.has_header("Cache-Control") and request.user.is_authenticated:
            # Neither a proxy nor the browser's cache stores the pages of a signed-in person.
            response["Cache-Control"] = "no-store"
        if is_api(request):
            return response
        was_read = response.status_code < 400 or response.status_code == 422
        if request.method == "POST" and VIEWED in request.META and was_read and request.user.is_authenticated:
            _confirm_copy(request, response)
        return _answer_fragment(request, response) if is_fragment(request) else response

    def process_view(self, request: HttpRequest, view: object, args: object, kwargs: object) -> None:
        request.META[VIEWED] = True


def _confirm_copy(request: HttpRequest, response: HttpResponse) -> None:
    """Set the cookie of a form that is saved, or shown again with its errors (422)."""
    copy = request.POST.get(COPY_FIELD, "")
    if _COPY.fullmatch(copy):
        name, secure = f"{COPY_COOKIE}{copy}", request.is_secure()
        response.set_cookie(name, "read", max_age=COPY_SECONDS, samesite="Strict", secure=secure)


def _answer_fragment(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Answer 401 to a page's own request where a person would be sent to the sign-in page."""
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


def posted_version(request: HttpRequest) -> int:
    """Return the version that the form of a page shows, its field `version`."""
    version = number(request.POST.get("version", ""))
    if version is None:
        raise Problem("The form does not say which version it shows.", errors=[FieldError("version", "missing")])
    return version


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The page has the token of an earlier session; its script gets the new one and sends the request again."""
    detail = "You have signed in again since this page was opened. Go back, reload the page, and try again."
    response = refused(request, CsrfFailed(detail))
    response[REFUSED] = STALE
    return response


def _is_sign_in(response: HttpResponse) -> bool:
    sign_in = resolve_url(settings.LOGIN_URL)
    return response.status_code == 302 and urlsplit(response.get("Location", "")).path == sign_in
