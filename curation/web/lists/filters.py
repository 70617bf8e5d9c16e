"""The base of every filter: of a list page, a REST list, an export, a run. A filter can be written as a URL query.

The parameters of a list are its filter, an order and a page of rows, and are the same for its page and its REST call.

In a URL a comma list is an OR and a repeated parameter an AND; a comma inside a value is written `\\,`. In JSON a
value is a string as in the URL, a list of strings (OR), or a list of such lists (AND of ORs).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Self, TypeVar
from urllib.parse import quote, urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from ninja import Schema
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from curation.web.ids import id_number
from curation.web.lists.clauses import Clause, all_matching, lookup_clause, read_page
from curation.web.lists.keyset import KeysetPage, paginate
from curation.web.problems import FieldError, Invalid, Problem, fault_of

Groups = tuple[tuple[str, ...], ...]
M = TypeVar("M")
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
                message = fault_of(entry)
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


class RequestQuery(RowFilter):
    """Parameters of a page and of its REST call, which are read alike."""

    @model_validator(mode="wrap")
    @classmethod
    def of_request(cls, data: object, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Read the parameters of a REST call as those of a page."""
        request = (info.context or {}).get("request")
        return cls.from_query(request.GET) if isinstance(request, HttpRequest) else handler(data)


class ListParams(RequestQuery):
    """`limit`, `cursor`, `count` and `sort` of every list. A subclass adds the filter's fields, or a filter as a base.

    `sorts` are the orders that an index supports, the first is the default; `sort_columns` names the column of a
    sort word where they differ.
    """

    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    sort_columns: ClassVar[Mapping[str, str]] = {}
    beside: ClassVar[frozenset[str]] = frozenset({"limit", "cursor", "count", "sort"})

    limit: int = Field(default=50, ge=1, le=500, description="Rows on one page.")
    cursor: str | None = Field(default=None, description="`next_cursor` of the page before.")
    count: bool = Field(default=False, description="Adds the exact `total`.")
    sort: str | None = Field(default=None, description="Field to order by, `-` before it for descending.")

    @classmethod
    def from_query(cls, query: QueryDict, *, ignore: Collection[str] = ()) -> Self:
        unknown = sorted(
            name for name in set(query) - set(cls.model_fields) - set(ignore) if not cls.pairs_of_parameter(name)
        )
        if unknown:
            raise Problem(
                f"Unknown parameter {', '.join(unknown)}. The parameters of this list are "
                f"{', '.join(sorted(cls.model_fields))}.",
                code="unknown_parameter",
                errors=[FieldError(name, "unknown parameter") for name in unknown],
            )
        return super().from_query(query, ignore=ignore)

    def order(self) -> str:
        """The column to order by, `-` before it for descending. Refuses an order without an index."""
        chosen = self.sort or self.sorts[0]
        if chosen not in self.sorts:
            raise Problem(
                f"This list cannot be sorted by {chosen!r}. Sort by one of {', '.join(self.sorts)}.",
                code="unknown_sort",
                errors=[FieldError("sort", "unknown sort order")],
            )
        field = chosen.removeprefix("-")
        return ("-" if chosen.startswith("-") else "") + self.sort_columns.get(field, field)

    def page(self, rows: QuerySet[Any, M]) -> KeysetPage[M]:
        return paginate(rows, sort=self.order(), cursor=self.cursor, limit=self.limit, count=self.count)

    def read(
        self, rows: Rows, clauses: Sequence[Clause] = (), *, columns: Callable[[Rows], Any] = lambda rows: rows
    ) -> KeysetPage[Any]:
        """The page of a list of many rows, by its lookups and these clauses; `columns` adds what it shows."""
        clauses = [*(lookup_clause(rows.model, *one) for one in self.conditions()), *clauses]
        page = read_page(rows, clauses, sort=self.order(), cursor=self.cursor, limit=self.limit, columns=columns)
        return replace(page, total=all_matching(rows, clauses).count()) if self.count else page

    def url(self, path: str, **changes: str | None) -> str:
        """`path` with these parameters, some of them changed or removed; the first page unless `cursor` is given."""
        pairs = [*self.pairs(), *self._order_pairs()]
        if changes:
            names = list(type(self).model_fields)
            pairs = [pair for pair in pairs if pair[0] not in changes]
            pairs += [(name, value) for name, value in changes.items() if value]
            pairs.sort(key=lambda pair: (pair[0] in self.beside, names.index(pair[0])))
        return _with_query(path, pairs)

    def url_without(self, path: str, position: int) -> str:
        """`path` with these parameters but for one condition, by its position in `pairs()`."""
        pairs = self.pairs()
        return _with_query(path, [*pairs[:position], *pairs[position + 1 :], *self._order_pairs()])

    def _order_pairs(self) -> list[tuple[str, str]]:
        found = []
        if self.limit != type(self).model_fields["limit"].default:
            found.append(("limit", str(self.limit)))
        if self.sort and self.sort != self.sorts[0]:
            found.append(("sort", self.sort))
        return found


@dataclass(frozen=True, slots=True)
class NamedList:
    """A list of a project, whose filters can be saved as views. `page` is the name of its page's URL."""

    name: str
    page: str
    params: type[ListParams]

    def canonical(self, query: QueryDict) -> str:
        """The filter's canonical query, with the order unless it is the default."""
        params = self.params.from_query(query)
        params.order()
        return params.url("").removeprefix("?")


_named: dict[str, NamedList] = {}
Params = TypeVar("Params", bound=type[ListParams])


def named_list(name: str, *, page: str) -> Callable[[Params], Params]:
    """Register the decorated parameters as those of a list."""

    def register(params: Params) -> Params:
        _named[name] = NamedList(name, page, params)
        return params

    return register


def find_list(name: str) -> NamedList:
    if name not in _named:
        words = ", ".join(sorted(_named))
        error = FieldError("list", f"is one of {words}")
        raise Invalid(f"There is no list {name!r}. The lists are {words}.", errors=[error])
    return _named[name]


def list_of_page(page: str | None) -> NamedList | None:
    return next((one for one in _named.values() if one.page == page), None)


def list_of_filter(filter: RowFilter) -> NamedList | None:
    """The list that can be filtered so."""
    given = {name for name, _ in filter.pairs()}
    bases = [base for base in type(filter).__mro__ if issubclass(base, RowFilter) and given <= base.model_fields.keys()]
    lists = (one for base in bases if base is not RowFilter for one in _named.values() if issubclass(one.params, base))
    return next(lists, None)


class ArchivableList(ListParams):
    """A list that hides archived rows, unless it is asked for them. `archived_column` is the lookup of their time."""

    archived_column: ClassVar[str] = "archived_at"

    archived: bool = Field(default=False, description="True lists the archived rows instead.")

    def narrow(self, rows: Rows) -> Rows:
        shown: Rows = super().narrow(rows).filter(**{f"{self.archived_column}__isnull": not self.archived})
        return shown


def _with_query(path: str, pairs: Sequence[tuple[str, str]]) -> str:
    return f"{path}?{url_query(pairs)}" if pairs else path
