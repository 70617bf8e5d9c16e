"""The conditions of a filter as clauses, each in two forms: one that uses its index and one that does not.

A page of a list is read in one of two ways. If the filter matches few rows, they are read from the filter's index and
sorted. If it matches many, the index of the list's order is scanned until the page is full. No planner can know which
is shorter: SQLite has no statistics and always takes the filter's index, which sorts 300,000 rows for a page of 50, and
PostgreSQL does the same until a table was analyzed. So the choice is made here: the filter's index is used if it has at
most `FEW` matching rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from django.db import connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

from curation.web.lists.keyset import KeysetPage, after, in_order, page_of, paginate

Rows = TypeVar("Rows", bound=models.QuerySet[Any])

# Reading and sorting this many rows takes as long as scanning past all others: about 10 ms. A range of scores is often
# combined with the queue's order, whose scan may begin at the wrong end, so more rows are worth sorting.
FEW = 3_000
FEW_IN_RANGE = 12_000


class Unindexed(models.Func):
    """A column without its index: the unary plus, or the greatest of one, is a no-op that no planner sees through."""

    arity = 1
    function = "GREATEST"

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, tuple[str | int, ...]]:
        sql, params = self.as_sql(compiler, connection, template="+%(expressions)s")
        return sql, tuple(params)


class FoundFirst(models.Func):
    """`FoundFirst(F("pk"), Subquery(ids))`: the id is one of these. PostgreSQL finds an array's ids before all else."""

    arity = 2
    arg_joiner = " = ANY(ARRAY"
    template = "%(expressions)s)"
    output_field = models.BooleanField()


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition of a filter. `sorted_by` names the orders in which its own indexes return the rows.

    `scanned` adds the condition without its index; it is None where the matches are not counted. `wide`: the
    index is used for up to `FEW_IN_RANGE` rows. `of_column`: the index is of one column, and its entries can be counted
    one by one.
    """

    indexed: Callable[[Any], Any]
    scanned: Callable[[Any], Any] | None = None
    sorted_by: frozenset[str] = frozenset()
    is_few: Callable[[Any], bool] | None = None
    wide: bool = False
    of_column: bool = False


def column_in(column: str, values: Sequence[str | int], *orders: str) -> Clause:
    """`column` is one of the values; its indexes are (project, column, id) and (project, column, order, id)."""
    lookup = {column: values[0]} if len(values) == 1 else {f"{column}__in": list(values)}
    alias = f"unindexed_{column}"
    unindexed = {alias: values[0]} if len(values) == 1 else {f"{alias}__in": list(values)}
    return Clause(
        indexed=lambda rows: rows.filter(**lookup),
        scanned=lambda rows: rows.alias(**{alias: Unindexed(models.F(column))}).filter(**unindexed),
        sorted_by=frozenset(("id", *orders)) if len(values) == 1 else frozenset(),
        of_column=True,
    )


def column_range(column: str, bounds: Mapping[str, object], *, wide: bool = True) -> Clause:
    """`bounds`: `gte`, `lte` or `lt` of a column that the list may also be ordered by."""
    alias = f"unindexed_{column}"
    return Clause(
        indexed=lambda rows: rows.filter(**{f"{column}__{bound}": value for bound, value in bounds.items()}),
        scanned=lambda rows: rows.alias(**{alias: Unindexed(models.F(column))}).filter(
            **{f"{alias}__{bound}": value for bound, value in bounds.items()}
        ),
        sorted_by=frozenset({column}),
        wide=wide,
        of_column=True,
    )


def all_matching(rows: Rows, clauses: Sequence[Clause]) -> Rows:
    """The rows for counts, exports and other reads of all of them."""
    for clause in clauses:
        rows = clause.indexed(rows)
    return rows


def read_page(
    rows: Rows,
    clauses: Sequence[Clause],
    *,
    sort: str,
    cursor: str | None,
    limit: int,
    columns: Callable[[Rows], Any] = lambda rows: rows,
) -> KeysetPage[Any]:
    """One page of the rows that match, with the columns that `columns` adds to them.

    PostgreSQL reads the ids of the page by themselves: it would join the columns of all matching rows first.
    """
    chosen, by_order = _choose(rows, clauses, sort)
    if not clauses or connections[rows.db].vendor != "postgresql":
        return paginate(columns(chosen), sort=sort, cursor=cursor, limit=limit)
    field = sort.removeprefix("-")
    is_own = any(one.attname == field for one in rows.model._meta.concrete_fields)  # or one of `columns`
    ids = in_order(after(chosen if is_own else columns(chosen), sort, cursor), sort).values_list("pk", flat=True)
    ids = ids[: limit + 1]
    if by_order and has_index(rows.model, field, ordered=True):
        # It would sort them where it expects fewer rows than there are.
        with _planned_without("sort", rows.db):
            found = list(ids)
    else:
        found = list(ids)
    # Beside another condition, or as a subquery, it may look for the ids in all rows, where it expects few.
    by_id = rows.all()
    by_id.query.clear_where()
    return page_of(list(in_order(columns(by_id).filter(pk__in=found), sort)), sort=sort, limit=limit)


@contextmanager
def _planned_without(step: str, using: str) -> Iterator[None]:
    """Plan the queries of the block without such steps, if PostgreSQL can; without statistics it takes wrong ones."""
    if connections[using].vendor != "postgresql":
        yield
        return
    with transaction.atomic(using, savepoint=False), connections[using].cursor() as cursor:
        cursor.execute(f"SET LOCAL enable_{step} = off")
        yield
        cursor.execute(f"SET LOCAL enable_{step} = on")


def has_index(model: type[models.Model], field: str, *, ordered: bool = False) -> bool:
    """Return whether an index of all rows begins with the field, or has it behind a first one. With `ordered` it must
    return rows of one first value in the order of the field and the id."""
    order = ["id"] if field == "id" else [field, "id"]
    for index in (*model._meta.indexes, *model._meta.total_unique_constraints):
        fields = [name.removeprefix("-") for name in index.fields]
        if index.condition is None and (fields[1:] == order if ordered else field in fields[:2]):
            return True
    return not ordered and any(
        one.name == field and (one.unique or getattr(one, "db_index", False)) for one in model._meta.fields
    )


def lookup_clause(model: type[models.Model], lookup: str, value: Any) -> Clause:
    """The clause of one lookup of a filter."""
    name, _, rest = lookup.partition("__")
    field = next((one for one in model._meta.concrete_fields if name in (one.name, one.attname)), None)
    if field is None or (field.is_relation and rest not in {"", "in"}):
        return counted(models.Q(**{lookup: value}))
    if not has_index(model, field.name):
        return unindexed(models.Q(**{lookup: value}))
    if rest != "in":
        return counted(models.Q(**{lookup: value}))
    clause = column_in(name, list(value))
    return clause if has_index(model, field.name, ordered=True) else replace(clause, sorted_by=frozenset())


def counted(condition: models.Q | models.Exists) -> Clause:
    """A condition that few rows of another table may have, or an index of its own."""
    return Clause(indexed=lambda rows: rows.filter(condition), scanned=lambda rows: rows.filter(condition))


def unindexed(condition: models.Q) -> Clause:
    """A condition without an index: its matches are not counted, which would read all rows."""
    return replace(counted(condition), is_few=lambda _: False)


def page_rows(rows: Rows, clauses: Sequence[Clause], *, sort: str) -> Rows:
    """The rows in the form that fills one page in this order (a column of the rows) fastest."""
    return _choose(rows, clauses, sort)[0]


def _choose(rows: Rows, clauses: Sequence[Clause], sort: str) -> tuple[Rows, bool]:
    """The rows of `page_rows`, and whether an index in their order has a page of them soon."""
    field = sort.removeprefix("-")
    choices = [clause for clause in clauses if clause.scanned is not None]
    if len(choices) == 1 and field in choices[0].sorted_by:
        return all_matching(rows, clauses), choices[0].of_column
    lead = next((clause for clause in choices if _is_few(rows, clause)), None)
    others = [clause for clause in clauses if clause is not lead]
    if connections[rows.db].vendor == "postgresql":
        if lead is not None:
            ids = models.Subquery(lead.indexed(rows).order_by().values("pk"))
            return all_matching(rows.filter(FoundFirst(models.F("pk"), ids)), others), False
        # A condition that counts by itself has its rows elsewhere, and is looked up for each row of the scan.
        scanned = _scanned(rows, [one if one.is_few else replace(one, scanned=None) for one in clauses])
        return scanned, bool(choices) and all(one.of_column or one.is_few for one in choices)
    if lead is not None:
        # No condition on the project here: SQLite would use the order's index for it.
        ids = lead.indexed(rows).order_by().values("pk")
        return _scanned(type(rows)(rows.model, using=rows.db).filter(pk__in=ids), others), False
    ordered = next((clause for clause in choices if field in clause.sorted_by), None)
    chosen = rows if ordered is None else ordered.indexed(rows)
    return _scanned(chosen, [clause for clause in clauses if clause is not ordered]), True


def _scanned(rows: Rows, clauses: Sequence[Clause]) -> Rows:
    for clause in clauses:
        rows = (clause.scanned or clause.indexed)(rows)
    return rows


def _is_few(rows: models.QuerySet[Any], clause: Clause) -> bool:
    if clause.is_few is not None:
        return clause.is_few(rows)
    most = FEW_IN_RANGE if clause.wide else FEW
    found: models.QuerySet[Any] = clause.indexed(rows).order_by()[: most + 1]
    if not clause.of_column:
        return found.count() <= most
    # A bitmap would have all matches before the first is counted.
    with _planned_without("bitmapscan", rows.db):
        return found.count() <= most
