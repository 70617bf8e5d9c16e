"""Versions of single objects as `ETag`, `If-Match` on changes that would overwrite them, and `If-None-Match` on reads.

A change answers with the row's version as its `ETag`. The answer to a read may change without the version, such as a
sample's scores or a project's counts: its `ETag` is the version, a `-` and a hash of the body. The `ETag` of a read
without a version is the hash. `If-Match` compares the version in either.
"""

import hashlib

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags

from curation.web.problems import Stale

# The answers that are compared with `If-None-Match`; metrics are not, they change with every request.
COMPARED = ("application/json", "text/markdown", "text/csv")


def set_etag(response: HttpResponse, version: int | str) -> None:
    response["ETag"] = f'"{version}"'


def seen_versions(request: HttpRequest) -> list[str] | None:
    """Return the versions that `If-Match` names; None if it is not there, or takes any version.

    A weak `ETag` is one that a proxy has compressed. It names a version as well.
    """
    given = request.headers.get("If-Match", "*").strip()
    if given == "*":
        return None
    return [tag.strip().removeprefix("W/").strip('"').partition("-")[0] for tag in given.split(",")]


def refuse_stale(request: HttpRequest, version: int | str) -> None:
    """Raise `Stale` where the request's `If-Match` names another version; without the header nothing is checked."""
    seen = seen_versions(request)
    if seen is not None and str(version) not in seen:
        raise Stale.version(", ".join(seen), version)


def answer_unchanged(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return the answer to a read with an `ETag` of its content, or 304 where `If-None-Match` names that."""
    if request.method != "GET" or response.status_code != 200 or response.streaming:
        return response
    if not response.get("Content-Type", "").startswith(COMPARED):
        return response
    parts = [response["ETag"].strip('"')] if response.has_header("ETag") else []
    content = "-".join([*parts, hashlib.sha256(response.content).hexdigest()])
    response["ETag"] = etag = f'"{content}"'
    known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
    if etag not in known and "*" not in known:
        return response
    unchanged = HttpResponseNotModified()
    unchanged["ETag"] = etag
    return unchanged
