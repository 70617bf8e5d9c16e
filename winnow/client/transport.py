"""Requests: the token, safe repeats, and problems as exceptions."""

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import httpx

from winnow.client.errors import BY_STATUS, ConnectionFailed, ProblemError, ServerFailed, WrongFile

Json = dict[str, Any]
Params = Sequence[tuple[str, str]]
V1 = "/api/v1"
# A request that got one of these was not done, or not completely.
REFUSED, UNKNOWN = {429, 503}, {502, 504}
# What may be sent again after a broken connection: a POST has an Idempotency-Key.
REPEATABLE = {"GET", "HEAD", "POST", "PUT", "DELETE"}
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Transport:
    """Sends requests up to `attempts` times; `max_wait` is the longest wait in between, in seconds."""

    def __init__(self, http: httpx.Client, *, attempts: int, max_wait: float) -> None:
        if attempts < 1:
            raise ValueError("attempts must be at least 1")
        self._http = http
        self._attempts = attempts
        self._max_wait = max_wait

    def json(
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
        response = self._send(method, path, **content)
        return _json(response) if response.content else {}

    def change(self, path: str, body: Json | None, version: int | None) -> tuple[Json, str]:
        """POST a change of a row with a version; return the answer's JSON, and the version that the row has now."""
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        response = self._send("POST", path, headers=headers, json=body)
        # A proxy that compresses makes the tag weak: W/"3".
        return _json(response), response.headers["ETag"].removeprefix("W/").strip('"')

    def unless_unchanged(self, path: str, etag: str | None) -> tuple[Json | None, str | None]:
        """Return the answer's JSON and its ETag; None as JSON if it still has this ETag."""
        response = self._send("GET", path, headers={} if etag is None else {"If-None-Match": etag})
        return (None if response.status_code == 304 else _json(response)), response.headers.get("ETag", etag)

    def download(self, path: str, target: Path, sha256: str) -> Path:
        """Write a file and check its hash; a file that is not complete never has the name of `target`."""
        part = target.with_name(f"{target.name}.part")
        try:
            for attempt in range(1, self._attempts + 1):
                try:
                    found = self._write(path, part)
                    break
                except httpx.TransportError as error:
                    self._wait_for_connection(error, attempt, repeatable=True)
            if found != sha256:
                raise WrongFile(f"{target.name} has the sha256 {found}, the export lists {sha256}.")
            return part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def _write(self, path: str, part: Path) -> str:
        digest = hashlib.sha256()
        with self._streamed(path) as response, part.open("wb") as file:
            for chunk in response.iter_bytes():
                digest.update(chunk)
                file.write(chunk)
        return digest.hexdigest()

    @contextmanager
    def _streamed(self, path: str) -> Iterator[httpx.Response]:
        response = self._send("GET", path, stream=True)
        try:
            yield response
        finally:
            response.close()

    def _send(self, method: str, path: str, *, stream: bool = False, **content: Any) -> httpx.Response:
        """Return the answer; one with an error status is raised. Each try of a POST has the same Idempotency-Key."""
        headers = content.pop("headers", {})
        if method == "POST":
            headers["Idempotency-Key"] = uuid4().hex
        repeatable = method in REPEATABLE and (method == "POST" or "If-Match" not in headers)
        for attempt in range(1, self._attempts + 1):
            # Encoded at each try: a file is read from its beginning.
            request = self._http.build_request(method, V1 + path, headers=headers, **content)
            try:
                response = self._http.send(request, stream=stream)
                if response.is_error:
                    response.read()
                    response.close()
            except httpx.TransportError as error:
                self._wait_for_connection(error, attempt, repeatable=repeatable)
                continue
            if response.is_success or response.status_code == 304:
                return response
            problem = _problem(response)
            wait = self._wait_after(response, problem, attempt, repeatable=repeatable)
            if wait is None:
                raise problem
            sleep(wait)
        raise AssertionError("every try returns, raises or waits")

    def _wait_for_connection(self, error: httpx.TransportError, attempt: int, *, repeatable: bool) -> None:
        if attempt == self._attempts or not (repeatable or isinstance(error, NEVER_SENT)):
            raise ConnectionFailed(f"{self._http.base_url}: {error or type(error).__name__}") from error
        sleep(self._backoff(attempt))

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
