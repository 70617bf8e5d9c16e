"""What a filter asks of the rows, in two forms: one that a database may answer by index, one that it may not.

A page of a list is read in one of two ways. Where a filter leaves few rows, they are gathered by the filter's index
and sorted. Where it leaves many, the index of the list's order is walked until the page is full. SQLite knows nothing
of how frequent a value is and takes the filter's index always, which sorts 300,000 rows for a page of 50: there the
choice is made here, by looking whether the filter's index holds more than `FEW` rows. PostgreSQL has statistics.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

if TYPE_CHECKING:
    from curation.samples.models import SampleQuerySet

# Gathering and sorting this many rows costs as much as walking past their complement does: about 10 ms. A range of
# scores goes with the queue's order, whose walk may begin at the wrong end; there gathering pays for more rows.
FEW = 3_000
FEW_IN_RANGE = 12_000


class Walked(models.Func):
    """A column without its index: SQLite's unary plus is a no-op that its planner cannot see through."""

    arity = 1
    template = "+%(expressions)s"


class IsTrajectory(models.Func):
    """The condition of the partial index of trajectories."""

    arity = 1
    template = "%(expressions)s = 'trajectory'"
    output_field = models.BooleanField()


class HasAxis(models.Func):
    """Whether the scenario's axis has this value; PostgreSQL answers it by index.

    SQLite looks for the pair as `JSONField` writes it, which is quick, and reads the JSON only where that was found.
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
    """One condition of a filter. `streams` names the orders that its own indexes yield.

    `walk` adds the condition without an index; None where it has no index to begin with. `wide`: worth gathering more.
    """

    gather: Callable[["SampleQuerySet"], "SampleQuerySet"]
    walk: Callable[["SampleQuerySet"], "SampleQuerySet"] | None = None
    streams: frozenset[str] = frozenset()
    is_few: Callable[["SampleQuerySet"], bool] | None = None
    wide: bool = False


def column_in(column: str, values: Sequence[str | int], *orders: str) -> Clause:
    """`column` is one of the values; its indexes are (project, column, id) and (project, column, order, id)."""
    lookup = {column: values[0]} if len(values) == 1 else {f"{column}__in": list(values)}
    alias = f"walked_{column}"
    walked = {alias: values[0]} if len(values) == 1 else {f"{alias}__in": list(values)}
    return Clause(
        gather=lambda rows: rows.filter(**lookup),
        walk=lambda rows: rows.alias(**{alias: Walked(models.F(column))}).filter(**walked),
        streams=frozenset(("id", *orders)) if len(values) == 1 else frozenset(),
    )


def column_range(column: str, bounds: dict[str, object]) -> Clause:
    """`bounds`: `gte`, `lte` or `lt` of a column that the list may also be ordered by."""
    alias = f"walked_{column}"
    return Clause(
        gather=lambda rows: rows.filter(**{f"{column}__{bound}": value for bound, value in bounds.items()}),
        walk=lambda rows: rows.alias(**{alias: Walked(models.F(column))}).filter(
            **{f"{alias}__{bound}": value for bound, value in bounds.items()}
        ),
        streams=frozenset({column}),
        wide=True,
    )


def gathered(rows: "SampleQuerySet", clauses: Sequence[Clause]) -> "SampleQuerySet":
    """All conditions in their plain form, for counts, exports and whoever reads all rows."""
    for clause in clauses:
        rows = clause.gather(rows)
    return rows


def for_page(rows: "SampleQuerySet", clauses: Sequence[Clause], *, sort: str) -> "SampleQuerySet":
    """The conditions in the form that fills one page of this order (a column of `Sample`) soonest."""
    if connections[rows.db].vendor != "sqlite":
        return gathered(rows, clauses)
    field = sort.removeprefix("-")
    indexed = [clause for clause in clauses if clause.walk is not None]
    if len(indexed) == 1 and field in indexed[0].streams:
        return gathered(rows, clauses)
    lead = next((clause for clause in indexed if _is_few(rows, clause)), None)
    if lead is not None:
        # The few ids first, and no condition on the project beside them: SQLite would take it for the order's index.
        ids = lead.gather(rows).order_by().values("pk")
        chosen = rows.model.objects.filter(pk__in=ids)
    else:
        lead = next((clause for clause in indexed if field in clause.streams), None)
        chosen = rows if lead is None else lead.gather(rows)
    for clause in clauses:
        if clause is not lead:
            chosen = (clause.walk or clause.gather)(chosen)
    return chosen


def _is_few(rows: "SampleQuerySet", clause: Clause) -> bool:
    if clause.is_few is not None:
        return clause.is_few(rows)
    most = FEW_IN_RANGE if clause.wide else FEW
    return clause.gather(rows).order_by()[: most + 1].count() <= most
