"""What every filter of rows shares: of a page, a REST list, an export, a run. A filter is a URL.

In a URL a comma list is an OR and a repeated parameter an AND; a comma that belongs to a value is written `\\,`. In
JSON a value is a string as in the URL, a list of strings (OR), or a list of such lists (AND of ORs).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Self
from urllib.parse import quote, urlencode

from django.http import QueryDict
from ninja import Schema
from pydantic import AfterValidator, BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WithJsonSchema

from curation.web.problems import FieldError, Invalid, Problem

Groups = tuple[tuple[str, ...], ...]
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")
_AXES: TypeAdapter[dict[str, str | list[str]]] = TypeAdapter(dict[str, str | list[str]])
_STRINGS: TypeAdapter[str | list[str] | list[list[str]]] = TypeAdapter(str | list[str] | list[list[str]])


def split_words(text: str) -> tuple[str, ...]:
    """The values of one comma list, in order and each once."""
    parts = (part.replace("\\,", ",").strip() for part in _UNESCAPED_COMMA.split(text))
    return tuple(dict.fromkeys(part for part in parts if part))


def _groups(given: object) -> Groups:
    """A JSON value as an AND of ORs."""
    value = _STRINGS.validate_python(_lists(given), strict=True)
    if isinstance(value, str):
        groups: list[tuple[str, ...]] = [split_words(value)]
    elif all(isinstance(entry, str) for entry in value):
        groups = [tuple(dict.fromkeys(str(entry) for entry in value))]
    else:
        groups = [tuple(dict.fromkeys(entry)) for entry in value]
    for word in (word for group in groups for word in group):
        if "\0" in word or not word.isascii() and any("\ud800" <= sign <= "\udfff" for sign in word):
            raise ValueError("it holds characters that no database stores")
    return tuple(group for group in groups if group)


def _lists(given: object) -> object:
    """Tuples, as our own fields hold them, are lists to the checker."""
    return [_lists(entry) for entry in given] if isinstance(given, tuple | list) else given


def _axes(given: object) -> object:
    """Axes may also come as an object: `{"task": "cleanup", "difficulty": ["1", "2"]}`."""
    if not isinstance(given, Mapping):
        return given
    axes = _AXES.validate_python(given, strict=True)
    return [
        [f"{axis}={value}" for value in ([values] if isinstance(values, str) else values)]
        for axis, values in axes.items()
    ]


def one_of(allowed: Collection[str]) -> AfterValidator:
    """Refuses a word that is not among the allowed ones."""

    def check(groups: Groups) -> Groups:
        for word in (word for group in groups for word in group):
            if word not in allowed:
                raise ValueError(f"{word!r} is not one of {', '.join(allowed)}")
        return groups

    return AfterValidator(check)


def ids_of(noun: str) -> AfterValidator:
    """Refuses what cannot be an id."""

    def check(groups: Groups) -> Groups:
        for word in (word for group in groups for word in group):
            if not (word.isascii() and word.isdigit() and len(word) < 19):
                raise ValueError(f"{word!r} is not the id of a {noun}")
        return groups

    return AfterValidator(check)


def _axis_pairs(groups: Groups) -> Groups:
    for word in (word for group in groups for word in group):
        if not all(word.partition("=")):
            raise ValueError(f"{word!r} is not of the form axis=value")
    return groups


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


_JSON = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
Words = Annotated[Groups, BeforeValidator(_groups), _JSON]
Axes = Annotated[Words, BeforeValidator(_axes), AfterValidator(_axis_pairs)]
Moment = Annotated[datetime, AfterValidator(_utc)]


class RowFilter(Schema):
    """Which rows; without any field all of them. Unknown keys are refused. A subclass adds fields and `apply`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def scalars(cls) -> frozenset[str]:
        """The fields that take one value; all others are lists of words."""
        return frozenset(name for name, field in cls.model_fields.items() if field.annotation != Groups)

    @classmethod
    def from_query(cls, query: QueryDict, *, besides: Collection[str] = ()) -> Self:
        """The filter of a URL, whose other parameters are named by `besides`. Raises `Problem` (400)."""
        values: dict[str, object] = {}
        scalars = cls.scalars()
        for name in (name for name in query if name not in besides):
            given = [value for value in query.getlist(name) if value.strip(" ,")]
            if not given:
                continue  # an empty field of a form
            if name in scalars:
                if len(given) > 1:
                    raise _refusal(Problem, [FieldError(name, "it may be given only once")])
                values[name] = given[0]
            else:
                values[name] = [list(split_words(value)) for value in given]
        return cls._checked(values, Problem, "")

    @classmethod
    def from_json(cls, value: object, *, path: str = "filter") -> Self:
        """The filter of a run's parameters or a recipe. Raises `Invalid` with paths such as `filter.bucket`."""
        return cls._checked(value, Invalid, path)

    def is_empty(self) -> bool:
        return not self.to_query()

    def to_query(self) -> str:
        """The canonical URL query: what two equal filters have in common. Without `?`."""
        pairs: list[tuple[str, str]] = []
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, tuple):
                pairs += [(name, ",".join(word.replace(",", "\\,") for word in group)) for group in value]
            elif isinstance(value, bool):
                pairs.append((name, str(value).lower()))
            elif isinstance(value, datetime):
                pairs.append((name, value.astimezone(UTC).isoformat().replace("+00:00", "Z")))
            elif value is not None and value != "":
                pairs.append((name, f"{value:g}" if isinstance(value, float) else value))
        return urlencode(pairs, safe=",:/=", quote_via=quote)

    @classmethod
    def _checked(cls, value: object, kind: type[Problem], path: str) -> Self:
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            known = ", ".join(cls.model_fields)
            errors = []
            for entry in error.errors():
                place = str(entry["loc"][0]) if entry["loc"] else ""
                unknown = entry["type"] == "extra_forbidden"
                message = (
                    f"unknown, the filter knows {known}" if unknown else entry["msg"].removeprefix("Value error, ")
                )
                errors.append(FieldError(".".join(part for part in (path, place) if part), message))
            raise _refusal(kind, list({e.path: e for e in errors}.values())) from None


def _refusal(kind: type[Problem], errors: Sequence[FieldError]) -> Problem:
    detail = "; ".join(f"{error.path}: {error.message}" if error.path else error.message for error in errors)
    return kind(detail, code="bad_filter", errors=errors)
