"""The one way to refuse a request. Pages and the REST API turn a `Problem` into their own kind of response."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import ValidationError

from curation.web.text.figures import quoted

_NO_OBJECT = frozenset(("model_type", "model_attributes_type", "dict_type", "mapping_type"))

_VERB = re.compile(r"(is|are|has|have|contains|does|can|cannot|may|must|needs)\b")
_WHAT_TO_ENTER = re.compile(
    r"(\d|(at most|at least|one of|one character|an?)\b)(?!.*\b(is|are|has|have|must|cannot)\b)"
)
_FIRST_WORD = re.compile(r"[a-z]+\b(?![/_.-])")


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field of the input; `path` is dotted, such as `recipe.formats.0`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def sentence(self) -> str:
        """Return the message as a sentence for people who see it beside the field. Programs get it as it is, after the
        field's path."""
        text = quoted(self.message.strip()).replace("Input should be", "must be", 1)
        if _VERB.match(text):
            text = f"This {text}"
        elif _WHAT_TO_ENTER.match(text):
            text = f"Enter {text}"
        elif _FIRST_WORD.match(text):
            text = text[:1].upper() + text[1:]
        return text if text.endswith((".", "?", "!")) else f"{text}."


class Problem(Exception):
    """A refused request, explained to the person who sent it (RFC 9457).

    `code` is stable, for programs; `detail` is the reason and the remedy, as a page shows it, and `str(problem)` with
    the backticks that REST keeps; `current` is the state that the request did not know of, such as the version of a
    stale write. `retry_after` is the seconds after which to try again.
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
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code or type(self).code
        self.errors = tuple(errors)
        self.current = current or {}
        self.retry_after = retry_after

    @property
    def detail(self) -> str:
        return quoted(str(self))

    @classmethod
    def at(cls, path: str, detail: str, *, code: str = "") -> Self:
        """Refuse one field; its error is the detail."""
        return cls(detail, code=code, errors=[FieldError(path, detail)])

    @classmethod
    def fields(cls, errors: Sequence[FieldError], *, code: str = "") -> Self:
        """Refuse these fields; the detail names the first five."""
        return cls("; ".join(map(str, errors[:5])), code=code, errors=errors)

    @classmethod
    def of(cls, error: ValidationError, *path: str) -> Self:
        """Refuse pydantic's errors; the fields' paths begin with `path`."""
        found = error.errors(include_input=False, include_url=False)
        return cls.fields([FieldError(".".join(map(str, [*path, *e["loc"]])), fault_of(e)) for e in found])


def fault_of(entry: Mapping[str, Any]) -> str:
    """Return the text of one of pydantic's errors. Its own speaks of dictionaries and attributes where a sender writes
    JSON."""
    return "must be a JSON object" if entry["type"] in _NO_OBJECT else str(entry["msg"]).removeprefix("Value error, ")


class NotAuthenticated(Problem):
    status, code, title = 401, "not_authenticated", "Sign in first"


class NotAllowed(Problem):
    status, code, title = 403, "not_allowed", "Your role or token does not allow this"


class Blind(NotAllowed):
    """Something that reveals, before a decision, facts that blind review hides."""

    code, title = "blind", "Hidden while samples are pending"


class CsrfFailed(Problem):
    status, code, title = 403, "csrf_failed", "The CSRF token is missing or wrong"


class NotFound(Problem):
    status, code, title = 404, "not_found", "Not found"


class MethodNotAllowed(Problem):
    status, code, title = 405, "method_not_allowed", "Method not allowed"


class Conflict(Problem):
    status, code, title = 409, "conflict", "Conflict"


class InProgress(Conflict):
    code, title = "in_progress", "The first such request is still in progress"


class Gone(Problem):
    status, code, title = 410, "gone", "Deleted"


class Stale(Problem):
    status, code, title = 412, "stale_version", "The object has changed since you read it"

    @classmethod
    def version(cls, seen: int | str, current: int | str) -> "Stale":
        return cls(
            f"You read version {seen}, the current version is {current}. Read it again, then repeat your change.",
            current={"version": current},
        )


class TooLarge(Problem):
    status, code, title = 413, "too_large", "The upload is too large"


class Invalid(Problem):
    status, code, title = 422, "invalid", "The input is not valid"


class TooManyRequests(Problem):
    status, code, title = 429, "too_many_requests", "Too many requests"


class Unavailable(Problem):
    status, code, title = 503, "unavailable", "Something that this needs is unavailable"
