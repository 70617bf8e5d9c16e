"""The base of every filter: of a list page, a REST list, an export, a run. A filter can be written as a URL query.

In a URL a comma list is an OR and a repeated parameter an AND; a comma inside a value is written `\\,`. In JSON a
value is a string as in the URL, a list of strings (OR), or a list of such lists (AND of ORs).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Self, TypeVar
from urllib.parse import quote, urlencode

from django.db.models import QuerySet
from django.http import QueryDict
from ninja import Schema
from pydantic import AfterValidator, BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WithJsonSchema

from curation.web.ids import id_number
from curation.web.problems import FieldError, Invalid, Problem

Groups = tuple[tuple[str, ...], ...]
Rows = TypeVar("Rows", bound=QuerySet[Any, Any])
YES_NO = (("true", "Yes"), ("false", "No"))
NOT_GIVEN = (None, "", ())
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
            raise ValueError("it contains characters that no database stores")
    return tuple(group for group in groups if group)


def _lists(given: object) -> object:
    """The strict checker takes lists only; the fields themselves are tuples."""
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


@dataclass(frozen=True, slots=True)
class OneOf(AfterValidator):
    """Says which words it allows, for a form."""

    allowed: Collection[str] | Callable[[], Collection[str]]


def one_of(allowed: Collection[str] | Callable[[], Collection[str]]) -> OneOf:
    def check(groups: Groups) -> Groups:
        known = allowed() if callable(allowed) else allowed
        for word in (word for group in groups for word in group):
            if word not in known:
                raise ValueError(f"{word!r} is not one of {', '.join(known)}")
        return groups

    return OneOf(check, allowed)


def ids_of(noun: str) -> AfterValidator:
    def check(groups: Groups) -> Groups:
        for word in (word for group in groups for word in group):
            if id_number(word) is None:
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


_JSON = WithJsonSchema(
    {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": "A comma list is an OR, repeated parameters are an AND.",
    }
)
Words = Annotated[Groups, BeforeValidator(_groups), _JSON]
Axes = Annotated[Words, BeforeValidator(_axes), AfterValidator(_axis_pairs)]
Moment = Annotated[datetime, AfterValidator(_utc)]


class RowFilter(Schema):
    """Which rows; an empty filter matches all. Unknown fields are refused.

    A subclass declares the fields and, in `lookups`, the column or lookup of each that needs no code of its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    lookups: ClassVar[Mapping[str, str]] = {}
    # Labels of the fields in forms and lists, in the order of a form, and the words of their values.
    labels: ClassVar[Mapping[str, str]] = {}
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {}
    # Fields that are no conditions, such as the sort order of a list.
    beside: ClassVar[frozenset[str]] = frozenset()

    def narrow(self, rows: Rows) -> Rows:
        """The rows that match every field in `lookups`."""
        for lookup, value in self.conditions():
            rows = rows.filter(**{lookup: value})
        return rows

    def conditions(self) -> list[tuple[str, Any]]:
        """The lookup and the value of each condition of the fields in `lookups`."""
        found: list[tuple[str, Any]] = []
        for name, lookup in self.lookups.items():
            value = getattr(self, name)
            if isinstance(value, tuple):
                found += [(f"{lookup}__in", group) for group in value]
            elif value is not None:
                found.append((lookup, value))
        return found

    @classmethod
    def from_query(cls, query: QueryDict, *, ignore: Collection[str] = ()) -> Self:
        """The filter of a URL. Raises `Problem` (400)."""
        values: dict[str, Any] = {}
        errors = []
        for name in (name for name in query if name not in ignore):
            field = cls.model_fields.get(name)
            given = [value for value in query.getlist(name) if value.strip(" ,")]
            if not given:
                continue  # an empty field of a form
            if pairs := cls.pairs_of_parameter(name):
                key = name.removeprefix(f"{pairs}.")
                groups = [[f"{key}={word}" for word in split_words(value)] for value in given]
                values[pairs] = [*values.get(pairs, ()), *groups]
            elif field is None or field.annotation == Groups:
                values[name] = [*values.get(name, ()), *(list(split_words(value)) for value in given)]
            elif len(given) == 1:
                values[name] = given[0]
            else:
                errors.append(FieldError(name, "it may be given only once"))
        if errors:
            raise Problem.fields(errors, code="bad_filter")
        return cls._checked(values, Problem, "")

    @classmethod
    def pairs_of_parameter(cls, name: str) -> str:
        """Return the field of a parameter such as `axes.task`, which is another form of `axes=task=…`; else ''."""
        field, _, key = name.partition(".")
        info = cls.model_fields.get(field)
        is_pairs = info is not None and any(getattr(one, "func", None) is _axis_pairs for one in info.metadata)
        return field if key and is_pairs else ""

    @classmethod
    def from_json(cls, value: object, *, path: str = "filter") -> Self:
        """The filter in a run's parameters or a recipe. Raises `Invalid` with paths such as `filter.bucket`."""
        return cls._checked(value, Invalid, path)

    @classmethod
    def offered(cls) -> Collection[str]:
        return list(cls.labels) or [name for name in cls.model_fields if name not in cls.beside]

    @classmethod
    def label_of(cls, name: str) -> str:
        return cls.labels.get(name) or name.replace("_", " ").capitalize()

    @classmethod
    def choices_of(cls, name: str) -> Sequence[tuple[str, str]]:
        """The values that a field allows, in words; empty if it allows any."""
        info = cls.model_fields.get(name)
        if name in cls.choices or info is None:
            return cls.choices.get(name, ())
        if info.annotation == bool | None:
            return YES_NO
        found = (one.allowed for one in info.metadata if isinstance(one, OneOf))
        allowed = next((words() if callable(words) else words for words in found), ())
        return [(word, word.replace("_", " ").capitalize()) for word in allowed]

    def is_empty(self) -> bool:
        return not self.pairs()

    def to_query(self) -> str:
        """The canonical URL query, without `?`: equal filters have the same."""
        return url_query(self.pairs())

    def words(self) -> str:
        """The conditions in the words of a form: "bucket Final or Refined; score from 66"."""
        return "; ".join(f"{self.label_of(name).lower()} {self.words_of(name, text)}" for name, text in self.pairs())

    def words_of(self, name: str, text: str) -> str:
        """A value of the URL as a form says it."""
        has_words = isinstance(getattr(self, name), tuple | bool)
        return words_of(text, self.choices_of(name)) if has_words else text

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values of the canonical URL query."""
        found = []
        for name, value in vars(self).items():
            if value not in NOT_GIVEN and name not in self.beside:
                found += [(name, text) for text in self.texts_of(name)]
        return found

    def texts_of(self, name: str) -> list[str]:
        """The values of one field in the canonical URL query."""
        value = getattr(self, name)
        if value in NOT_GIVEN or (value is False and type(self).model_fields[name].default is False):
            return []
        if isinstance(value, tuple):
            return [",".join(word.replace(",", "\\,") for word in group) for group in value]
        if isinstance(value, bool):
            return [str(value).lower()]
        if isinstance(value, datetime):
            return [value.astimezone(UTC).isoformat().replace("+00:00", "Z")]
        return [f"{value:g}" if isinstance(value, float) else str(value)]

    @classmethod
    def _checked(cls, value: object, kind: type[Problem], path: str) -> Self:
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            errors: dict[str, FieldError] = {}
            for entry in error.errors():
                field = str(entry["loc"][0]) if entry["loc"] else ""
                message = entry["msg"].removeprefix("Value error, ")
                if entry["type"] == "extra_forbidden":
                    message = f"no such filter; the filters are {', '.join(cls.model_fields)}"
                errors[field] = FieldError(".".join(part for part in (path, field) if part), message)
            code = "invalid" if cls.beside.issuperset(errors) else "bad_filter"
            raise kind.fields(list(errors.values()), code=code) from None


def words_of(value: str, choices: Sequence[tuple[str, str]]) -> str:
    """A value of a URL as a person reads it: "Final or Refined"."""
    labels = dict(choices)
    return " or ".join(labels.get(word, word) for word in split_words(value))


def url_query(pairs: Sequence[tuple[str, str]]) -> str:
    return urlencode(pairs, safe=",:/=", quote_via=quote)
