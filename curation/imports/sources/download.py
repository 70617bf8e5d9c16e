"""Fetch web sources into storage, once: a resumed run reads the same bytes."""

import tempfile
from collections.abc import Callable
from typing import IO
from urllib.parse import urljoin, urlsplit

import httpx
from django.conf import settings
from django.core.files import File

from curation.imports.sources.rows import SourceError
from curation.imports.sources.stored import store_upload
from curation.projects.models import Project
from curation.web.outbound.addresses import IMPORTS, ForbiddenAddress
from curation.web.outbound.transport import CheckedTransport
from curation.web.problems import Problem

MOST_HOPS = 5
TIMEOUT = httpx.Timeout(30.0, connect=10.0)


def download(*, project: Project, url: str, checkpoint: Callable[[], None], token: str = "") -> str:
    """Fetch `url` and return its key in storage. `token` is sent to the first host only. Raises `SourceError`."""
    with tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as file:
        if not fetch(url, file, most=settings.MAX_UPLOAD_BYTES, checkpoint=checkpoint, token=token):
            limit = settings.MAX_UPLOAD_BYTES // 1024 // 1024
            raise SourceError(f"{_shown(url)} is larger than {limit} MB (MAX_UPLOAD_MB).")
        file.seek(0)
        try:
            return store_upload(project=project, file=File(file, name=url), name=urlsplit(url).path)
        except Problem as problem:
            raise SourceError(problem.detail) from None


def fetch(url: str, into: IO[bytes], *, most: int, checkpoint: Callable[[], None], token: str = "") -> bool:
    """Write up to `most` bytes of `url` into a file; return whether that was all.

    Redirects are checked like the first address. Raises `SourceError`.
    """
    try:
        with httpx.Client(timeout=TIMEOUT, transport=CheckedTransport(IMPORTS)) as client:
            return _follow(client, url, token, into, most, checkpoint)
    except ForbiddenAddress as problem:
        raise SourceError(problem.detail) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceError(f"{_shown(url)} could not be fetched: {error or type(error).__name__}") from None


def _follow(
    client: httpx.Client, url: str, token: str, into: IO[bytes], most: int, checkpoint: Callable[[], None]
) -> bool:
    plain = {"Accept-Encoding": "identity"}
    headers = {**plain, **({"Authorization": f"Bearer {token}"} if token else {})}
    for _ in range(MOST_HOPS):
        if urlsplit(url).scheme not in {"http", "https"}:
            raise SourceError(f"{_shown(url)} is not an http or https address.")
        with client.stream("GET", url, headers=headers) as response:
            if response.is_redirect:
                url, headers = urljoin(url, response.headers.get("Location", "")), plain
                continue
            if response.status_code != 200:
                raise SourceError(f"{_shown(url)} answered {response.status_code}.")
            size = 0
            # Raw bytes: a response with `Content-Encoding: gzip` is read like a gzip file.
            for chunk in response.iter_raw(1024 * 1024):
                into.write(chunk[: most - size])
                size += len(chunk)
                if size > most:
                    return False
                checkpoint()
            return True
    raise SourceError(f"{_shown(url)} redirects more than {MOST_HOPS} times.")


def _shown(url: str) -> str:
    """The URL without query and credentials, which can be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
