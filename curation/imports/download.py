"""Sources on the web are fetched once into storage: what a resumed run reads is what it began with."""

import tempfile
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

import httpx
from django.conf import settings
from django.core.files import File

from curation.imports.places import refuse_private_host
from curation.imports.rows import SourceError
from curation.imports.stored import keep
from curation.projects.models import Project
from curation.web.problems import Problem

MOST_HOPS = 5
TIMEOUT = httpx.Timeout(30.0, connect=10.0)


def download(*, project: Project, url: str, checkpoint: Callable[[], None], token: str = "") -> str:
    """Fetches `url` and returns its key in storage. `token` goes to the first host only.

    Each redirect obeys the rule for private addresses; raises `SourceError` in words.
    """
    with tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as file:
        try:
            with httpx.Client(timeout=TIMEOUT, follow_redirects=False, trust_env=True) as client:
                _fetch(client, url, token, file.write, checkpoint)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SourceError(f"{_shown(url)} could not be fetched: {error or type(error).__name__}") from None
        file.seek(0)
        try:
            return keep(project=project, file=File(file, name=url), name=urlsplit(url).path)
        except Problem as problem:
            raise SourceError(problem.detail) from None


def _fetch(
    client: httpx.Client, url: str, token: str, write: Callable[[bytes], int], checkpoint: Callable[[], None]
) -> None:
    plain = {"Accept-Encoding": "identity"}
    headers = {**plain, **({"Authorization": f"Bearer {token}"} if token else {})}
    for _ in range(MOST_HOPS):
        _refuse(url)
        with client.stream("GET", url, headers=headers) as response:
            if response.is_redirect:
                url, headers = urljoin(url, response.headers.get("Location", "")), plain
                continue
            if response.status_code != 200:
                raise SourceError(f"{_shown(url)} answered {response.status_code}.")
            size = 0
            # Raw bytes: a `.jsonl.gz` that is served with `Content-Encoding: gzip` is read like any gzip file.
            for chunk in response.iter_raw(1024 * 1024):
                size += len(chunk)
                if size > settings.MAX_UPLOAD_BYTES:
                    limit = settings.MAX_UPLOAD_BYTES // 1024 // 1024
                    raise SourceError(f"{_shown(url)} is larger than {limit} MB (MAX_UPLOAD_MB).")
                write(chunk)
                checkpoint()
            return
    raise SourceError(f"{_shown(url)} redirects more than {MOST_HOPS} times.")


def _refuse(url: str) -> None:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise SourceError(f"{_shown(url)} is not an http or https address.")
    try:
        refuse_private_host(url)
    except Problem as problem:
        raise SourceError(problem.detail) from None


def _shown(url: str) -> str:
    """Without what may be a secret: query and credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
