"""Requests: the token, safe repeats, and problems as exceptions."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import sleep
from typing import IO, Any
from uuid import uuid4

import httpx

from winnow_client.errors import BY_STATUS, ConnectionFailed, ProblemError, ServerFailed, WrongFile

Json = dict[str, Any]
Params = Sequence[tuple[str, str]]
V1 = "/api/v1"
# A request that got one of these was not done, or not completely.
REFUSED, UNKNOWN = {429, 503}, {502, 504}
# What may be sent again after a broken connection: a POST has an Idempotency-Key.
REPEATABLE = {"GET", "HEAD", "POST", "PUT", "DELETE"}
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Transport:
    """Sends requests up to `attempts` times; `max_wait` is the longest wait in between, in seconds.

    With `httpx.Client` its coroutines block, and never wait for an event loop.
    """

    def __init__(self, http: httpx.Client | httpx.AsyncClient, *, attempts: int, max_wait: float) -> None:
        if attempts < 1:
            raise ValueError("attempts must be at least 1")
        self._http = http
        self._attempts = attempts
        self._max_wait = max_wait

    @property
    def is_async(self) -> bool:
        return isinstance(self._http, httpx.AsyncClient)

    async def close(self) -> None:
        if isinstance(self._http, httpx.AsyncClient):
            await self._http.aclose()
        else:
            self._http.close()

    async def sleep(self, seconds: float) -> None:
        if self.is_async:
            await asyncio.sleep(seconds)
        else:
            sleep(seconds)

    async def json(
        self,
        method: str,
        path: str,
        *,
        params: Params = (),
        body: object = None,
        data: Mapping[str, str] | None = None,
        files: Mapping[str, Any] | None = None,
        version: int | str | None = None,
    ) -> Json:
        """Return the answer's JSON, an empty dict if it has none. `version` is the one that the change rests on."""
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        content: dict[str, Any] = {"params": list(params), "data": data, "files": files, "headers": headers}
        if body is not None:
            content["json"] = body
        response = await self._send(method, path, **content)
        return _json(response) if response.content else {}

    async def change(self, path: str, body: Json | None, version: int | None) -> tuple[Json, str]:
        """POST a change of a row with a version; return the answer's JSON, and the version that the row has now."""
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        response = await self._send("POST", path, headers=headers, json=body)
        # A proxy that compresses makes the tag weak: W/"3".
        return _json(response), response.headers["ETag"].removeprefix("W/").strip('"')

    async def unless_unchanged(self, path: str, etag: str | None) -> tuple[Json | None, str | None]:
        """Return the answer's JSON and its ETag; None as JSON if it still has this ETag."""
        response = await self._send("GET", path, headers={} if etag is None else {"If-None-Match": etag})
        return (None if response.status_code == 304 else _json(response)), response.headers.get("ETag", etag)

    async def download(self, path: str, file: IO[bytes], sha256: str) -> None:
        """Write a response to a file. Raises `WrongFile` if it has another hash."""
        for attempt in range(1, self._attempts + 1):
            file.seek(0)
            file.truncate()
            digest = hashlib.sha256()
            try:
                async for chunk in self._chunks(path):
                    digest.update(chunk)
                    file.write(chunk)
                break
            except httpx.TransportError as error:
                await self._wait_for_connection(error, attempt, repeatable=True)
        if digest.hexdigest() != sha256:
            raise WrongFile(f"{path} has the sha256 {digest.hexdigest()}, the export lists {sha256}.")

    async def _chunks(self, path: str) -> AsyncIterator[bytes]:
        response = await self._send("GET", path, stream=True)
        try:
            if self.is_async:
                async for chunk in response.aiter_bytes():
                    yield chunk
            else:
                for chunk in response.iter_bytes():
                    yield chunk
        finally:
            if self.is_async:
                await response.aclose()
            else:
                response.close()

    async def _respond(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        """Return the answer; that of a stream is read only if its status is an error."""
        if isinstance(self._http, httpx.AsyncClient):
            response = await self._http.send(request, stream=stream)
            if response.is_error:
                await response.aread()
        else:
            response = self._http.send(request, stream=stream)
            if response.is_error:
                response.read()
        return response

    async def _send(self, method: str, path: str, *, stream: bool = False, **content: Any) -> httpx.Response:
        """Return the answer; one with an error status is raised. Each try of a POST has the same Idempotency-Key."""
        headers = content.pop("headers", {})
        if method == "POST":
            headers["Idempotency-Key"] = uuid4().hex
        repeatable = method in REPEATABLE and (method == "POST" or "If-Match" not in headers)
        for attempt in range(1, self._attempts + 1):
            # Encoded at each try: a file is read from its beginning.
            request = self._http.build_request(method, V1 + path, headers=headers, **content)
            try:
                response = await self._respond(request, stream=stream)
            except httpx.TransportError as error:
                await self._wait_for_connection(error, attempt, repeatable=repeatable)
                continue
            if response.is_success or response.status_code == 304:
                return response
            problem = _problem(response)
            wait = self._wait_after(response, problem, attempt, repeatable=repeatable)
            if wait is None:
                raise problem
            await self.sleep(wait)
        raise AssertionError("every try returns, raises or waits")

    async def _wait_for_connection(self, error: httpx.TransportError, attempt: int, *, repeatable: bool) -> None:
        if attempt == self._attempts or not (repeatable or isinstance(error, NEVER_SENT)):
            raise ConnectionFailed(f"{self._http.base_url}: {error or type(error).__name__}") from error
        await self.sleep(self._backoff(attempt))

    def _wait_after(
        self, response: httpx.Response, problem: ProblemError, attempt: int, *, repeatable: bool
    ) -> float | None:
        """Return the seconds before the next try; None if there is none."""
        status = response.status_code
        # The first try of this request is still in progress, behind a broken connection.
        ours = status == 409 and problem.code == "in_progress"
        if attempt == self._attempts or not (status in REFUSED or ours or (status in UNKNOWN and repeatable)):
            return None
        if problem.retry_after is None:
            return self._backoff(attempt)
        return problem.retry_after if problem.retry_after <= self._max_wait else None

    def _backoff(self, attempt: int) -> float:
        longest: float = min(self._max_wait, 0.5 * 2 ** (attempt - 1))
        return longest * random.uniform(0.5, 1)  # noqa: S311 - so that clients do not come back all at once


def _json(response: httpx.Response) -> Json:
    try:
        found = response.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        media = response.headers.get("Content-Type", "no content type")
        raise ServerFailed(response.status_code, {"detail": f"{response.url} did not answer with JSON, but {media}."})
    return found


def _problem(response: httpx.Response) -> ProblemError:
    try:
        found = response.json()
    except ValueError:
        found = None
    status = response.status_code
    problem = found if isinstance(found, dict) else {"detail": _without_problem(response)}
    kind = BY_STATUS.get(status, ServerFailed if status >= 500 else ProblemError)
    return kind(status, problem, retry_after=_retry_after(response.headers.get("Retry-After", "")))


def _without_problem(response: httpx.Response) -> str:
    """Say what something before the site answered, such as a proxy."""
    if response.has_redirect_location:
        return f"{response.url} redirects to {response.headers['Location']}: give that as the site's URL."
    media = response.headers.get("Content-Type", "").partition(";")[0]
    return (
        response.text[:500].strip() if media == "text/plain" else f"{response.url} answered with {media or 'nothing'}."
    )


def _retry_after(header: str) -> float | None:
    """Return the seconds of a `Retry-After`, which is a number or a date; None if it is neither."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())
