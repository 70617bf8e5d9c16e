"""The one way to refuse a request. Pages and the REST API turn a `Problem` into their own kind of answer."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong at one place of the input; `path` is dotted, such as `recipe.formats.0`."""

    path: str
    message: str


class Problem(Exception):
    """A request that is refused, in words for the person who sent it (RFC 9457).

    `code` is stable and meant for programs; `detail` says what to do about it; `current` carries the state that the
    request did not know of (the version of a stale write).
    """

    status = 400
    code = "bad_request"
    title = "The request cannot be understood"

    def __init__(
        self,
        detail: str,
        *,
        code: str = "",
        errors: Sequence[FieldError] = (),
        current: dict[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.errors = tuple(errors)
        self.current = current or {}


class NotAuthenticated(Problem):
    status, code, title = 401, "not_authenticated", "Sign in first"


class NotAllowed(Problem):
    status, code, title = 403, "not_allowed", "Your role or token does not allow this"


class NotFound(Problem):
    status, code, title = 404, "not_found", "There is no such thing here"


class Conflict(Problem):
    status, code, title = 409, "conflict", "This stands against what is there"


class Stale(Problem):
    status, code, title = 412, "stale_version", "It has changed since you read it"


class TooLarge(Problem):
    status, code, title = 413, "too_large", "The upload is too large"


class Invalid(Problem):
    status, code, title = 422, "invalid", "The input is not valid"


class TooManyRequests(Problem):
    status, code, title = 429, "too_many_requests", "Too many requests"

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Unavailable(Problem):
    status, code, title = 503, "unavailable", "A part that this needs is not there"
