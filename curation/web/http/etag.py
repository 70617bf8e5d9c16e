"""Versions of single objects as `ETag`, `If-Match` on changes that would overwrite them, and `If-None-Match` on reads.

A change answers with the row's version as its `ETag`. The answer to a read may change without the version, such as a
sample's scores or a project's counts: its `ETag` is the version, a `-` and a hash of the body. The `ETag` of a read
without a version is the hash. `If-Match` compares the version in either.
"""

import hashlib
from collections.abc import Mapping
from typing import TypeVar

import orjson
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags

from curation.web.problems import Stale

V = TypeVar("V", bound=int | str)

# The answers that are compared with `If-None-Match`; metrics are not, they change with every request.
COMPARED = ("application/json", "text/markdown", "text/csv")


def version_of(state: object) -> str:
    """Return the version of an object that counts none: a digest of the values that its changes may overwrite."""
    shown = orjson.dumps(state, default=DjangoJSONEncoder().default, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(shown).hexdigest()[:16]


def set_etag(response: HttpResponse, version: int | str) -> None:
    response["ETag"] = f'"{version}"'


def seen_version(request: HttpRequest, version: V, *, now: Mapping[str, object] | None = None) -> V | None:
    """Return the row's `version` if the request's `If-Match` names it, so that it can be checked again under a lock;
    None without the header or for `*`, when nothing is checked. Raises `Stale` if the header names another version; its
    `current` has the version, and the row's values in `now`."""
    match = matches(request, version)
    if match is False:
        stale = Stale.version(request.headers["If-Match"], version)
        stale.current |= now or {}
        raise stale
    return version if match else None


def matches(request: HttpRequest, version: int | str) -> bool | None:
    """Return whether the request's `If-Match` names the version; None without the header or for `*`."""
    given = request.headers.get("If-Match", "*").strip()
    if given == "*":
        return None
    # A proxy that compresses an answer makes its tag weak. A tag of a read has a hash behind the version.
    tags = [tag.strip().removeprefix("W/").strip('"') for tag in given.split(",")]
    return any(str(version) in (tag, tag.rpartition("-")[0]) for tag in tags)


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
