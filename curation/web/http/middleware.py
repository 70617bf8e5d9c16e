"""Around every request: an id that logs and answers share, problems in words, idempotent POSTs, the rate limit."""

import hashlib
import time
import uuid
from collections.abc import Callable

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from curation.web.http import idempotency
from curation.web.http.responses import problem_response
from curation.web.problems import Problem, TooManyRequests

Answer = Callable[[HttpRequest], HttpResponse]


class RequestIdMiddleware:
    """Gives each request an id, and each answer the same in `X-Request-Id`."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.META["winnow.request_id"] = uuid.uuid4().hex
        response = self.get_response(request)
        response["X-Request-Id"] = request.META["winnow.request_id"]
        return response


class ProblemMiddleware:
    """Pages: a `Problem` becomes an error page, or for an htmx request a short text that the page shows."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            _refuse_nul(request)
        except Problem as problem:
            return self._told(request, problem)
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return self._told(request, error) if isinstance(error, Problem) else None

    def _told(self, request: HttpRequest, error: Problem) -> HttpResponse:
        if is_api(request):
            return problem_response(request, error)
        if request.headers.get("HX-Request"):
            return HttpResponse(error.detail, status=error.status, content_type="text/plain; charset=utf-8")
        context = {"problem": error, "request_id": request.META.get("winnow.request_id", "")}
        return render(request, "errors/problem.html", context, status=error.status)


class ApiMiddleware:
    """REST only: the rate limit with its headers, and the answer to an `Idempotency-Key`."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_api(request):
            return self.get_response(request)
        limit, left, reset = _count_request(request)
        try:
            _refuse_nul(request)
            if left < 0:
                raise TooManyRequests(f"More than {limit} requests in a minute.", retry_after=reset)
            if request.method == "POST" and idempotency.HEADER in request.headers:
                response = idempotency.respond_once(request, self.get_response)
            else:
                response = self.get_response(request)
        except Problem as problem:
            response = problem_response(request, problem)
        response["RateLimit-Limit"] = str(limit)
        response["RateLimit-Remaining"] = str(max(0, left))
        response["RateLimit-Reset"] = str(reset)
        return response


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/v1/")


def _refuse_nul(request: HttpRequest) -> None:
    """An address with a NUL character names nothing, and PostgreSQL would fail on looking for it."""
    if "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
        raise Problem("The address holds a NUL character.", code="nul")


def _count_request(request: HttpRequest) -> tuple[int, int, int]:
    """(limit, left or below 0, seconds to the next window) for the credential; a fixed window of one minute."""
    limit = settings.API_REQUESTS_PER_MINUTE
    window, spent = divmod(int(time.time()), 60)
    sent = request.headers.get("Authorization") or request.COOKIES.get("sessionid") or request.META["REMOTE_ADDR"]
    key = f"api-rate:{hashlib.sha256(sent.encode()).hexdigest()}:{window}"
    cache.add(key, 0, 120)
    try:
        used = cache.incr(key)
    except ValueError:  # the window was evicted between the two calls
        used = 1
    return limit, limit - used, 60 - spent
