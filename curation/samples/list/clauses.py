"""The conditions of a filter as clauses, each in two forms: one that uses its index and one that does not.

A page of a list is read in one of two ways. If the filter matches few rows, they are read from the filter's index and
sorted. If it matches many, the index of the list's order is scanned until the page is full. SQLite has no statistics
and always takes the filter's index, which sorts 300,000 rows for a page of 50. So the choice is made here: the
filter's index is used if it has at most `FEW` matching rows. PostgreSQL chooses by its statistics among filters that
match many rows. For few, or for a word that its statistics do not have, it would scan the whole list.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

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


class IsTrajectory(models.Func):
    """The condition as the partial index of trajectories writes it."""

    arity = 1
    template = "%(expressions)s = 'trajectory'"
    output_field = models.BooleanField()


class HasOpinions(models.Func):
    """The condition as the partial index of samples that several people are deciding writes it."""

    arity = 1
    template = "%(expressions)s > 0"
    output_field = models.BooleanField()


class HasAxis(models.Func):
    """The scenario's axis has this value; PostgreSQL uses an index.

    SQLite searches for the pair as `JSONField` writes it, which is fast, and parses the JSON only of rows that match.
    """

    sqlite = "(instr({axes}, %s) > 0 AND EXISTS (SELECT 1 FROM json_each({axes}) WHERE key = %s AND value = %s))"
    postgresql = "{axes} @> %s::jsonb"

    def __init__(self, axis: str, value: str) -> None:
        super().__init__(models.F("axes"), output_field=models.BooleanField())
        self.axis = axis
        self.value = value

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, tuple[str, ...]]:
        column, _params = compiler.compile(self.source_expressions[0])
        written = json.dumps({self.axis: self.value})[1:-1]
        return self.sqlite.replace("{axes}", column), (written, self.axis, self.value)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, tuple[str, ...]]:
        column, _params = compiler.compile(self.source_expressions[0])
        return self.postgresql.replace("{axes}", column), (orjson.dumps({self.axis: self.value}).decode(),)


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition of a filter. `sorted_by` names the orders in which its own indexes return the rows.

    `scanned` adds the condition without its index; it is None for a condition without an index. `wide`: the index is
    used for up to `FEW_IN_RANGE` rows.
    """

    indexed: Callable[[Any], Any]
    scanned: Callable[[Any], Any] | None = None
    sorted_by: frozenset[str] = frozenset()
    is_few: Callable[[Any], bool] | None = None
    wide: bool = False


def column_in(column: str, values: Sequence[str | int], *orders: str) -> Clause:
    """`column` is one of the values; its indexes are (project, column, id) and (project, column, order, id)."""
    lookup = {column: values[0]} if len(values) == 1 else {f"{column}__in": list(values)}
    alias = f"unindexed_{column}"
    unindexed = {alias: values[0]} if len(values) == 1 else {f"{alias}__in": list(values)}
    return Clause(
        indexed=lambda rows: rows.filter(**lookup),
        scanned=lambda rows: rows.alias(**{alias: Unindexed(models.F(column))}).filter(**unindexed),
        sorted_by=frozenset(("id", *orders)) if len(values) == 1 else frozenset(),
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
    )


def all_matching(rows: Rows, clauses: Sequence[Clause]) -> Rows:
    """The rows for counts, exports and other reads of all of them."""
    for clause in clauses:
        rows = clause.indexed(rows)
    return rows


def page_rows(rows: Rows, clauses: Sequence[Clause], *, sort: str) -> Rows:
    """The rows in the form that fills one page in this order (a column of the rows) fastest."""
    field = sort.removeprefix("-")
    choices = [clause for clause in clauses if clause.scanned is not None]
    if len(choices) == 1 and field in choices[0].sorted_by:
        return all_matching(rows, clauses)
    lead = next((clause for clause in choices if _is_few(rows, clause)), None)
    if connections[rows.db].vendor == "postgresql":
        if lead is None:
            return all_matching(rows, clauses)
        ids = models.Subquery(lead.indexed(rows).order_by().values("pk"))
        first: Rows = rows.filter(FoundFirst(models.F("pk"), ids))
        return all_matching(first, [clause for clause in clauses if clause is not lead])
    if lead is not None:
        # No condition on the project here: SQLite would use the order's index for it.
        ids = lead.indexed(rows).order_by().values("pk")
        chosen: Rows = rows.model.objects.filter(pk__in=ids)
    else:
        lead = next((clause for clause in choices if field in clause.sorted_by), None)
        chosen = rows if lead is None else lead.indexed(rows)
    for clause in clauses:
        if clause is not lead:
            chosen = (clause.scanned or clause.indexed)(chosen)
    return chosen


def _is_few(rows: models.QuerySet[Any], clause: Clause) -> bool:
    if clause.is_few is not None:
        return clause.is_few(rows)
    most = FEW_IN_RANGE if clause.wide else FEW
    found: models.QuerySet[Any] = clause.indexed(rows)
    return found.order_by()[: most + 1].count() <= most
