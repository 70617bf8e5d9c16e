"""A running Winnow, as one user's token sees it."""

from __future__ import annotations

import os
from typing import Any, Generic, Self
from urllib.parse import quote

import httpx

from winnow_client import schemas as s
from winnow_client.calls import Async, Caller, M, Sync, call
from winnow_client.project import Project
from winnow_client.records import Audit, Evaluation, Export, Guarantee, Run, Sample, listed, record
from winnow_client.responses import parse
from winnow_client.rows import Rows, Value, query
from winnow_client.transport import V1, Json, Transport


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


class Site(Caller[M], Generic[M]):
    """The calls of both clients."""

    def __init__(self, http: httpx.Client | httpx.AsyncClient, attempts: int, max_wait: float) -> None:
        self._transport = Transport(http, attempts=attempts, max_wait=max_wait)

    @call
    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    @call
    async def me(self) -> s.MeOut:
        """The account and the scopes of the token."""
        return parse(s.MeOut, await self._transport.json("GET", "/me"))

    def projects(self, /, **filters: Value) -> Rows[Project[M], M]:
        """Projects that you are a member of."""
        return Rows(self._transport, "/projects", filters, listed(Project, self._transport))

    @call
    async def project(self, slug: str) -> Project[M]:
        return record(Project, self._transport, await self._read("projects", slug))

    @call
    async def create_project(self, slug: str, name: str = "") -> Project[M]:
        """Create a project, whose admin you become. The token needs the scope `admin`."""
        body = {"slug": slug, "name": name or slug}
        return record(Project, self._transport, await self._transport.json("POST", "/projects", body=body))

    @call
    async def run(self, run_id: str) -> Run[M]:
        return record(Run, self._transport, await self._read("runs", run_id))

    @call
    async def sample(self, sample_id: str) -> Sample[M]:
        return record(Sample, self._transport, await self._read("samples", sample_id))

    @call
    async def audit(self, audit_id: str) -> Audit[M]:
        return record(Audit, self._transport, await self._read("audits", audit_id))

    @call
    async def guarantee(self, guarantee_id: str) -> Guarantee[M]:
        return record(Guarantee, self._transport, await self._read("guarantees", guarantee_id))

    @call
    async def export(self, export_id: str) -> Export[M]:
        return record(Export, self._transport, await self._read("exports", export_id))

    @call
    async def evaluation(self, evaluation_id: str) -> Evaluation[M]:
        return record(Evaluation, self._transport, await self._read("evaluations", evaluation_id))

    @call
    async def request(self, /, method: str, path: str, *, body: Any = None, **params: Value) -> Json:
        """Make any other call: `winnow.request("GET", "/projects/demo/leaderboard")`, with or without `/api/v1`."""
        below = path.removeprefix(V1).lstrip("/")
        return await self._transport.json(method.upper(), f"/{below}", params=query(params), body=body)

    async def _read(self, noun: str, name: str) -> Json:
        return await self._transport.json("GET", f"/{noun}/{quote(str(name), safe='')}")


class Winnow(Site[Sync]):
    """The site at `url`. Without arguments, `WINNOW_URL` and `WINNOW_TOKEN` of the environment are used.

    `timeout` is for one request, in seconds. A request that was refused for a while (429, 503), or whose connection
    broke, is sent up to `attempts` times; a `Retry-After` longer than `max_wait` seconds is raised instead.
    """

    def __init__(
        self, url: str = "", token: str = "", *, timeout: float = 60.0, attempts: int = 6, max_wait: float = 60.0
    ) -> None:
        super().__init__(httpx.Client(timeout=timeout, **_connection(url, token)), attempts, max_wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class AsyncWinnow(Site[Async]):
    """The same for asyncio: `await` each call, and read lists with `async for`.

    Reading and writing files blocks the event loop.
    """

    def __init__(
        self, url: str = "", token: str = "", *, timeout: float = 60.0, attempts: int = 6, max_wait: float = 60.0
    ) -> None:
        super().__init__(httpx.AsyncClient(timeout=timeout, **_connection(url, token)), attempts, max_wait)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()


def _connection(url: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token_of(token)}", "Accept": "application/json"}
    return {"base_url": address_of(url), "headers": headers}
