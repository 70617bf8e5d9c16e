"""Parameters of a list, the same for its page and its REST call: a filter, an order, a page of rows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from pydantic import Field, ModelWrapValidatorHandler, ValidationInfo, model_validator

from curation.web.lists.clauses import Clause, all_matching, lookup_clause, read_page
from curation.web.lists.filters import RowFilter, Rows, url_query
from curation.web.lists.keyset import KeysetPage, paginate
from curation.web.problems import FieldError, Invalid, Problem

M = TypeVar("M")


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
