"""Around every request: metrics, request id, upload limit, problems as responses, idempotency, rate limit, and the
headers of a page.

A page makes requests itself, by htmx or fetch. It must not take a sign-in page, or the page of a proxy, for an answer:
it would lose the typed text.
"""

import hashlib
import re
import time
import uuid
from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render, resolve_url
from prometheus_client import Counter, Histogram

from curation.web.failures import problem_of
from curation.web.http import idempotency
from curation.web.http.responses import answer_unchanged, problem_response
from curation.web.ids import number
from curation.web.problems import (
    CsrfFailed,
    FieldError,
    Invalid,
    MethodNotAllowed,
    NotAuthenticated,
    Problem,
    TooLarge,
    TooManyRequests,
)
from curation.web.telemetry import bind
from curation.web.text.reordering import REORDERING, page_with_signs, without_reordering

GetResponse = Callable[[HttpRequest], HttpResponse]
# Shared by all web processes through small files in `METRICS_FOLDER`.
REQUESTS = Counter("winnow_http_requests", "HTTP requests.", ["area", "method", "status"])
SECONDS = Histogram(
    "winnow_http_seconds", "Time to answer.", ["area"], buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
)
FORM_OVERHEAD = 1024 * 1024  # bytes of a form besides its file
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


# Where the authentication writes which token or user of a REST call it has checked, such as `token:7`.
CREDENTIAL = "winnow.credential"


class Middleware:
    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response


class RequestMiddleware(Middleware):
    """Gives each request an id, which it sends as `X-Request-Id`, and counts requests by area (api or page), method and
    status; not by address, which could be anything. HEAD is answered as GET, without the body."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started, method = time.perf_counter(), request.method
        request.META["winnow.request_id"] = uuid.uuid4().hex
        if method == "HEAD":
            request.method = "GET"
            request.META.pop("HTTP_RANGE", None)  # is for GET alone
        with bind(request_id=request.META["winnow.request_id"]):
            response = self.get_response(request)
        response["X-Request-Id"] = request.META["winnow.request_id"]
        if method == "HEAD":
            request.method = "HEAD"
            if isinstance(response, StreamingHttpResponse):
                response.streaming_content = iter(())
            else:
                response.content = b""
        area = "api" if request.path.startswith("/api/") else "page"
        REQUESTS.labels(area, method if method in METHODS else "other", str(response.status_code)).inc()
        SECONDS.labels(area).observe(time.perf_counter() - started)
        return response


class CompressionMiddleware(GZipMiddleware):
    """Compresses pages. REST answers keep the strong ETags that scripts write by; assets are compressed already."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not response.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)


class UploadLimitMiddleware(Middleware):
    """Refuses uploads over the limit by their `Content-Length`, before anything is read."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdigit() or int(length) <= settings.MAX_UPLOAD_BYTES + FORM_OVERHEAD:
            return self.get_response(request)
        sent, most = int(length) // 1024 // 1024, settings.MAX_UPLOAD_BYTES // 1024 // 1024
        detail = f"The upload has {sent} MB; this server accepts {most} MB (MAX_UPLOAD_MB)."
        return refused(request, TooLarge(f"{detail} Compress it with gzip, or give a URL."))


class ProblemMiddleware(Middleware):
    """Turns a `Problem` into an error page, or into a short text for an htmx request."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            _refuse_nul(request)
        except Problem as problem:
            return refused(request, problem)
        response = self.get_response(request)
        if response.status_code != 405 or is_api(request):
            return response
        page = refused(request, MethodNotAllowed("A form is sent to this address. Go back to the page with the form."))
        page["Allow"] = response["Allow"]
        return page

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        problem = error if isinstance(error, Problem) else problem_of(error)
        return refused(request, problem) if problem else None

    def process_view(self, request: HttpRequest, view: object, args: object, kwargs: object) -> HttpResponse | None:
        """Refuse NUL in the form of a page. Forms of REST calls are read after authentication, by their calls."""
        if request.method != "POST" or is_api(request) or not request.user.is_authenticated:
            return None
        for name, values in request.POST.lists():
            if "\x00" in "".join([name, *values]):
                problem = Invalid.fields([FieldError(name.replace("\x00", ""), "contains a NUL character")], code="nul")
                return refused(request, problem)
        return None


class ApiMiddleware(Middleware):
    """REST only: the rate limit with its headers."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_api(request):
            return self.get_response(request)
        limit, left, reset = _count_request(request)
        try:
            _refuse_nul(request)
            if left < 0:
                raise TooManyRequests(f"More than {limit} requests in a minute.", retry_after=reset)
            response = answer_unchanged(request, self.get_response(request))
        except Problem as problem:
            response = problem_response(request, problem)
        if response.status_code == 405:
            allowed = response["Allow"]
            response = problem_response(request, MethodNotAllowed(f"Allowed methods: {allowed}."))
            response["Allow"] = allowed
        response["RateLimit-Limit"] = str(limit)
        response["RateLimit-Remaining"] = str(max(0, left))
        response["RateLimit-Reset"] = str(reset)
        return response


class IdempotencyMiddleware(Middleware):
    """REST only: the stored response to an `Idempotency-Key`, for callers that are authenticated (`CREDENTIAL`)."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        credential = request.META.get(CREDENTIAL)
        if credential is None or request.method != "POST" or idempotency.HEADER not in request.headers:
            return self.get_response(request)
        try:
            return idempotency.respond_once(request, self.get_response, credential=credential)
        except Problem as problem:
            return problem_response(request, problem)


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/v1/")


def refused(request: HttpRequest, problem: Problem) -> HttpResponse:
    if is_api(request):
        return problem_response(request, problem)
    if request.headers.get("HX-Request"):
        response = HttpResponse(
            without_reordering(problem.detail), status=problem.status, content_type="text/plain; charset=utf-8"
        )
    elif kept := _without_wrong_parameters(request, problem):
        return kept
    else:
        context = {"problem": problem, "request_id": request.META.get("winnow.request_id", "")}
        # The shell of the project makes queries, and one of them may have failed.
        in_project = "winnow.access" in request.META and problem.status < 500
        template = "errors/in_project.html" if in_project else "errors/problem.html"
        response = render(request, template, context, status=problem.status)
    if isinstance(problem, NotAuthenticated):
        response["WWW-Authenticate"] = "Bearer"
    if problem.retry_after is not None:
        response["Retry-After"] = str(problem.retry_after)
    return response


WRONG_PARAMETER = frozenset({"bad_filter", "unknown_parameter", "unknown_sort"})


def _without_wrong_parameters(request: HttpRequest, problem: Problem) -> HttpResponse | None:
    """A list with a wrong parameter is shown without it, and says so. None if that cannot be done."""
    wrong = {error.path for error in problem.errors} & request.GET.keys()
    page = request.resolver_match.url_name if request.resolver_match else None
    if (
        request.method != "GET"
        or not (page or "").endswith("-list")
        or problem.code not in WRONG_PARAMETER
        or not wrong
        or not hasattr(request, "_messages")
    ):
        return None
    query = request.GET.copy()
    for name in wrong:
        del query[name]
    messages.warning(request, f"{problem.detail} The list is shown without {', '.join(sorted(wrong))}.")
    return HttpResponseRedirect(f"{request.path}?{query.urlencode()}" if query else request.path)


def _refuse_nul(request: HttpRequest) -> None:
    """An address with a NUL character matches nothing, and PostgreSQL would fail on it."""
    if "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
        raise Problem("The address contains a NUL character.", code="nul")


def _count_request(request: HttpRequest) -> tuple[int, int, int]:
    """(limit, left or below 0, seconds to the next window) of the credential, in fixed windows of one minute."""
    limit = settings.API_REQUESTS_PER_MINUTE
    window, spent = divmod(int(time.time()), 60)
    address = request.META.get("REMOTE_ADDR", "")  # empty or missing on a socket
    sent = request.headers.get("Authorization") or request.COOKIES.get("sessionid") or address
    key = f"api-rate:{hashlib.sha256(sent.encode()).hexdigest()}:{window}"
    cache.add(key, 0, 120)
    try:
        used = cache.incr(key)
    except ValueError:  # the key was evicted between the two calls
        used = 1
    return limit, limit - used, 60 - spent


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
        if html and not response.streaming:
            page = response.content.decode()
            if [character for character in REORDERING if character in page]:
                response.content = page_with_signs(page)
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
