"""Versions of single objects as `ETag`, and `If-Match` on changes that would overwrite them."""

from django.http import HttpRequest, HttpResponse

from curation.web.problems import Stale


def set_etag(response: HttpResponse, version: int | str) -> None:
    response["ETag"] = f'"{version}"'


def refuse_stale(request: HttpRequest, version: int) -> None:
    """Raise `Stale` where the request's `If-Match` names another version; without the header nothing is checked."""
    given = request.headers.get("If-Match", "*").strip()
    if given != "*" and f'"{version}"' not in [tag.strip() for tag in given.split(",")]:
        raise Stale.version(given, version)
