"""Versions of single objects as `ETag`, and `If-Match` on what would overwrite them."""

from django.http import HttpRequest, HttpResponse

from curation.web.problems import Stale


def set_etag(response: HttpResponse, version: int | str) -> None:
    response["ETag"] = f'"{version}"'


def refuse_stale(request: HttpRequest, version: int) -> None:
    """Raises `Stale` where the request's `If-Match` names another version; without the header nothing is checked."""
    given = request.headers.get("If-Match")
    if given is None or given.strip() == "*":
        return
    if f'"{version}"' not in [tag.strip() for tag in given.split(",")]:
        raise Stale(
            f'You read version {given.strip()}, the current one is "{version}". Read it again and decide anew.',
            current={"version": version},
        )
