"""Counts of HTTP requests, shared by all web processes through small files in the data folder."""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram

REQUESTS = Counter("winnow_http_requests", "HTTP requests.", ["area", "method", "status"])
SECONDS = Histogram(
    "winnow_http_seconds", "Time to answer.", ["area"], buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class TrafficMiddleware:
    """Counts each request by area (api or page), method and status; never by address, which could be anything."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self.get_response(request)
        area = "api" if request.path.startswith("/api/") else "page"
        method = request.method if request.method in METHODS else "other"
        REQUESTS.labels(area, method, str(response.status_code)).inc()
        SECONDS.labels(area).observe(time.perf_counter() - started)
        return response
