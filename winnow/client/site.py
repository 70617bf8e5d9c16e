"""A running Winnow, as one user's token sees it."""

import os
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from winnow.client.project import Project
from winnow.client.records import Audit, Evaluation, Export, Guarantee, Run, Sample
from winnow.client.rows import Rows, Value, query
from winnow.client.transport import V1, Json, Transport


def address_of(url: str) -> str:
    """Return the site's URL: the given one, or that of the environment. Raises `ValueError` if it is no URL."""
    url = url or os.environ.get("WINNOW_URL") or "http://127.0.0.1:8000"
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"The site's URL is {url!r}; it must begin with http:// or https://.")
    return url


def token_of(token: str) -> str:
    """Return the API token: the given one, or that of the environment. Raises `ValueError` if it cannot be a token."""
    token = token or os.environ.get("WINNOW_TOKEN", "")
    if not token:
        raise ValueError("There is no API token: give `token`, or set WINNOW_TOKEN. Create one under Settings, Tokens.")
    if not (token.isascii() and token.isprintable()):
        raise ValueError("The API token has a character that no token has, such as a line's end.")
    return token


class Winnow:
    """The site at `url`. Without arguments, `WINNOW_URL` and `WINNOW_TOKEN` of the environment are used.

    `timeout` is for one request, in seconds. A request that was refused for a while (429, 503), or whose connection
    broke, is sent up to `attempts` times; a `Retry-After` longer than `max_wait` seconds is raised instead.
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        timeout: float = 60.0,
        attempts: int = 6,
        max_wait: float = 60.0,
    ) -> None:
        self._http = httpx.Client(
            base_url=address_of(url),
            headers={"Authorization": f"Bearer {token_of(token)}", "Accept": "application/json"},
            timeout=timeout,
        )
        self._transport = Transport(self._http, attempts=attempts, max_wait=max_wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def projects(self, **filters: Value) -> Rows[Project]:
        """Projects that you are a member of."""
        return Rows(self._transport, "/projects", filters, lambda row: Project(self._transport, row))

    def project(self, slug: str) -> Project:
        return Project(self._transport, self._read("projects", slug))

    def create_project(self, slug: str, name: str = "") -> Project:
        """Create a project, whose admin you become. The token needs the scope `admin`."""
        body = {"slug": slug, "name": name or slug}
        return Project(self._transport, self._transport.json("POST", "/projects", body=body))

    def run(self, run_id: str) -> Run:
        return Run(self._transport, self._read("runs", run_id))

    def sample(self, sample_id: str) -> Sample:
        return Sample(self._transport, self._read("samples", sample_id))

    def audit(self, audit_id: str) -> Audit:
        return Audit(self._transport, self._read("audits", audit_id))

    def guarantee(self, guarantee_id: str) -> Guarantee:
        return Guarantee(self._transport, self._read("guarantees", guarantee_id))

    def export(self, export_id: str) -> Export:
        return Export(self._transport, self._read("exports", export_id))

    def evaluation(self, evaluation_id: str) -> Evaluation:
        return Evaluation(self._transport, self._read("evaluations", evaluation_id))

    def request(self, method: str, path: str, *, body: Any = None, **params: Value) -> Json:
        """Make any other call: `winnow.request("GET", "/projects/demo/leaderboard")`, with or without `/api/v1`."""
        below = path.removeprefix(V1).lstrip("/")
        return self._transport.json(method.upper(), f"/{below}", params=query(params), body=body)

    def _read(self, noun: str, name: str) -> Json:
        return self._transport.json("GET", f"/{noun}/{quote(str(name), safe='')}")
