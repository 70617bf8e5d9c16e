"""Queries that Django does not have: reads whose SQL is compiled once, a count as a column, and the database's clock.

Django spends 0.2 to 1.7 ms on building and compiling a query that the database answers in a twentieth of that. Use
`Prepared` only for a read that every page, or every pair of taking and deciding, makes, and only where it gets
measurably slower without.

Times that machines compare with each other, such as leases, come from the database's clock alone: the clock of a worker
can be minutes wrong. In a query it is `Now()`, which is the start of the statement on PostgreSQL. The clock of SQLite
is that of its machine, in milliseconds.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast

import orjson
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import IntegerField, Model, QuerySet, Subquery
from django.db.models.expressions import BaseExpression
from django.db.models.query import RelatedPopulator, get_related_populators
from django.db.models.sql.compiler import SQLCompiler

# A row: an instance of the model, or a tuple for `values_list`.
R = TypeVar("R")
Value = int | str | datetime | list[int]
# No literal of a query is this large, and a 32-bit key still fits.
FIRST_STAND_IN = 2_000_000_000


class RowCount(Subquery):
    """The number of rows of a query, as a column."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet[Any, Any]) -> None:
        super().__init__(rows.values("pk"))


class Prepared(Generic[R]):
    """A query whose SQL stays the same while its values change: `Prepared(build, digest=str)`, then `.first(digest=…)`
    or `.all(digest=…)`. A value of the kind `list` is for an `IdList`.

    `build` gets a stand-in for each value and returns the query; each stand-in among the query's parameters is replaced
    by the caller's value. Rows are read from the database every time. A query is of instances or, by `values_list`, of
    tuples. `build` must not look at the values, and no value may be None, which would need other SQL. Raises
    `TypeError` at the first use if a value never reaches the database. A query that locks rows needs a transaction
    around every call; Django checks this at the first call only.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, R]], **kinds: type[Value]) -> None:
        self._build = build
        self._kinds = kinds
        # A compiled query belongs to a connection, and a connection to one thread.
        self._of_thread = threading.local()

    def first(self, **values: Value) -> R | None:
        rows = self._rows(values, "first")
        return rows[0] if rows else None

    def all(self, **values: Value) -> list[R]:
        return self._rows(values, "all")

    def _rows(self, values: Mapping[str, Value], which: Literal["first", "all"]) -> list[R]:
        connection = connections[DEFAULT_DB_ALIAS]
        compiled: _Compiled | None = getattr(self._of_thread, which, None)
        if compiled is None or compiled.connection is not connection:
            compiled = self._compile(connection, first=which == "first")
            setattr(self._of_thread, which, compiled)
        parameters = list(compiled.given)
        for place, name, adapt in compiled.places:
            parameters[place] = adapt(values[name]) if adapt else values[name]
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, parameters)
            found = cursor.fetchall()
        if compiled.converters:
            found = list(map(list, found))
            for column, functions, expression in compiled.converters:
                for convert in functions:
                    for row in found:
                        row[column] = convert(row[column], expression, connection)
        # `build` says which of the two its rows are.
        return cast(list[R], compiled.instances.read(found) if compiled.instances else list(map(tuple, found)))

    def _compile(self, connection: BaseDatabaseWrapper, *, first: bool) -> "_Compiled":
        stand_ins = {name: _stand_in(kind, number) for number, (name, kind) in enumerate(self._kinds.items())}
        query = self._build(**stand_ins)
        query = query[:1] if first else query
        compiler = query.query.get_compiler(using=connection.alias)
        sql, given = compiler.as_sql()
        adapters = {name: _adapter(connection, kind) for name, kind in self._kinds.items()}
        places = [
            (place, name, adapt)
            for name, adapt in adapters.items()
            for place, value in enumerate(given)
            if value == (adapt(stand_ins[name]) if adapt else stand_ins[name])
        ]
        if missing := set(stand_ins) - {name for _, name, _ in places}:
            raise TypeError(f"{', '.join(missing)} of a prepared query never reaches the database")
        converters = compiler.get_converters([column[0] for column in compiler.select])
        return _Compiled(
            connection=connection,
            sql=sql,
            given=given,
            places=places,
            converters=[(column, *converter) for column, converter in converters.items()],
            instances=_Instances.of(query.model, compiler) if query.query.default_cols else None,
        )


# Turns a value into what the driver takes, and a value of the driver into Python's.
Adapter = Callable[[Any], Any]
Converter = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    """`places` are the positions of parameters that are values, their names and adapters. `converters` are those of the
    columns whose values the driver gives in another type."""

    connection: BaseDatabaseWrapper
    sql: str
    given: Sequence[Any]
    places: Sequence[tuple[int, str, Adapter | None]]
    converters: Sequence[tuple[int, Sequence[Converter], BaseExpression]]
    instances: "_Instances | None"


@dataclass(frozen=True, slots=True)
class _Instances:
    """How rows become instances. Their own columns start at `start`; `populators` read those of `select_related`, and
    `annotations` names those of annotations."""

    model: type[Model]
    alias: str
    start: int
    attributes: Sequence[str]
    populators: Sequence[RelatedPopulator]
    annotations: Mapping[str, int]

    @classmethod
    def of(cls, model: type[Model], compiler: SQLCompiler) -> "_Instances":
        columns = compiler.klass_info["select_fields"]
        attributes = [compiler.select[column][0].target.attname for column in columns]
        # Unpacked, because django-stubs describe a later Django with one more argument.
        populators = get_related_populators(*[compiler.klass_info, compiler.select, compiler.using])
        return cls(model, str(compiler.using), columns[0], attributes, populators, compiler.annotation_col_map)

    def read(self, rows: Sequence[Sequence[Any]]) -> list[Model]:
        found = []
        end = self.start + len(self.attributes)
        for columns in rows:
            instance = self.model.from_db(self.alias, self.attributes, columns[self.start : end])
            for populator in self.populators:
                populator.populate(columns, instance)
            for name, column in self.annotations.items():
                setattr(instance, name, columns[column])
            found.append(instance)
        return found


def _stand_in(kind: type[Value], number: int) -> Value:
    if kind is int:
        return FIRST_STAND_IN + number
    if kind is list:
        return [FIRST_STAND_IN + number]
    return f"stand-in {number}" if kind is str else datetime(2900, 1, 1 + number, tzinfo=UTC)


def _adapter(connection: BaseDatabaseWrapper, kind: type[Value]) -> Adapter | None:
    """SQLite has times and lists as text."""
    if kind is list:
        return partial(list_parameter, connection)
    return connection.ops.adapt_datetimefield_value if kind is datetime else None


def list_parameter(connection: BaseDatabaseWrapper, values: Sequence[int] | Sequence[str]) -> str | list[int | str]:
    """Return the values as the one parameter of an `IdList`."""
    return orjson.dumps(values).decode() if connection.vendor == "sqlite" else list(values)


def database_now() -> datetime:
    """Return the time by the database's clock, which does not stand still in a transaction. It takes a short query on
    PostgreSQL; SQLite has the clock of this machine."""
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found.astimezone(UTC)


def database_seconds() -> float:
    return database_now().timestamp()


def seconds_ahead() -> float:
    """Return by how many seconds the clock of this machine is ahead of the database's."""
    return round(time.time() - database_seconds(), 3)
