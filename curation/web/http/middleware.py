"""Around every request: metrics, request id, upload limit, problems as responses, idempotency, rate limit."""

import hashlib
import time
import uuid
from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from prometheus_client import Counter, Histogram

from curation.web.failures import failure_of
from curation.web.http import idempotency
from curation.web.http.etag import answer_unchanged
from curation.web.http.responses import UNSTORABLE, problem_response, unstorable_problem
from curation.web.problems import (
    FieldError,
    Invalid,
    MethodNotAllowed,
    NotAuthenticated,
    Problem,
    TooLarge,
    TooManyRequests,
)
from curation.web.telemetry import bind

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
        if isinstance(error, UNSTORABLE):
            error = unstorable_problem(request, error)
        problem = error if isinstance(error, Problem) else failure_of(error)
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
        response = HttpResponse(problem.detail, status=problem.status, content_type="text/plain; charset=utf-8")
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
