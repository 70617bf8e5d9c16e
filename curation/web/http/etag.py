"""Versions of single objects as `ETag`, `If-Match` on changes that would overwrite them, and `If-None-Match` on reads.

Where a row's version is the `ETag`, the answer may change without it: a sample's scores, a project's counts. Such an
answer is never 304. The `ETag` of every other answer is the sha256 of its body.
"""

import hashlib

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags

from curation.web.problems import Stale


def set_etag(response: HttpResponse, version: int | str) -> None:
    response["ETag"] = f'"{version}"'


def refuse_stale(request: HttpRequest, version: int | str) -> None:
    """Raise `Stale` where the request's `If-Match` names another version; without the header nothing is checked."""
    given = request.headers.get("If-Match", "*").strip()
    if given != "*" and f'"{version}"' not in [tag.strip() for tag in given.split(",")]:
        raise Stale.version(given, version)


def answer_unchanged(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return the answer to a read with an `ETag` of its content, or 304 where `If-None-Match` names that."""
    if request.method != "GET" or response.status_code != 200 or response.streaming or response.has_header("ETag"):
        return response
    if not response.get("Content-Type", "").startswith("application/json"):
        return response
    response["ETag"] = etag = f'"{hashlib.sha256(response.content).hexdigest()}"'
    known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
    if etag not in known and "*" not in known:
        return response
    unchanged = HttpResponseNotModified()
    unchanged["ETag"] = etag
    return unchanged
