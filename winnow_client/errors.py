"""The client's exceptions. All of them are `WinnowError`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


class WinnowError(Exception):
    """Any failure that the client reports."""


class ConnectionFailed(WinnowError):
    """There is no answer. A request that is not safe to repeat may have been done."""


class MissingPackage(WinnowError, ImportError):
    """An optional package is not installed; the message says how to install it."""


class UnexpectedResponse(WinnowError):
    """A response lacks a field or has one of another type: the site has another version than the client."""

    def __init__(self, kind: str, error: Exception) -> None:
        super().__init__(f"The site's response is not the {kind} of this version of the client: {error}")


class WrongFile(WinnowError):
    """A downloaded file is not the one that the export lists."""


class RunTimeout(WinnowError, TimeoutError):
    """The run has not ended in time. It goes on."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error of one field; `path` is dotted, such as `recipe.formats.0`."""

    path: str
    message: str


class ProblemError(WinnowError):
    """A request that the site refused or failed, with the fields of its problem document (RFC 9457).

    `code` is stable, for programs. `current` is the state that the request did not know of. `retry_after` is in
    seconds. `code` is `http_<status>` where something before the site answered, such as a proxy.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        self.status = status
        self.code = str(problem.get("code") or f"http_{status}")
        self.title = str(problem.get("title") or "")
        self.detail = str(problem.get("detail") or self.title or f"The answer has status {status}.")
        self.errors = tuple(_field_errors(problem.get("errors")))
        self.request_id: str | None = problem.get("request_id")
        self.current: dict[str, Any] = problem.get("current") or {}
        self.retry_after = retry_after
        super().__init__(f"{status} {self.code}: {self.detail}")


def _field_errors(found: object) -> Iterator[FieldError]:
    """Read a problem's `errors`; what something before the site answers under this name can have any form."""
    for error in found if isinstance(found, list) else ():
        if isinstance(error, dict) and {"path", "message"} <= error.keys():
            yield FieldError(str(error["path"]), str(error["message"]))


class NotSignedIn(ProblemError):
    """401: the token is missing, unknown, expired or revoked."""


class NotAllowed(ProblemError):
    """403: the token's scopes or your role do not allow it."""


class NotFound(ProblemError):
    """404 or 410: it does not exist, was deleted, or is of a project that you are no member of."""


class Conflict(ProblemError):
    """409: what exists does not allow it."""


class Stale(ProblemError):
    """412: somebody has changed it since you read it. `current` has the version; read it again."""


class Invalid(ProblemError):
    """400, 413, 415 or 422: the request is wrong; `errors` names the fields."""


class RateLimited(ProblemError):
    """429, also after all tries."""


class ServerFailed(ProblemError):
    """5xx: the site failed, or cannot answer now."""


BY_STATUS: dict[int, type[ProblemError]] = {
    400: Invalid,
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: Stale,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
}
