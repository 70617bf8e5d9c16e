"""Reads that are compiled once. Django spends half a millisecond on building and compiling a query that the database
answers in a twentieth of that; what every call asks anew (who are you, what may you) is worth compiling once."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.query import ModelIterable
from django.db.models.sql.compiler import SQLCompiler

M = TypeVar("M", bound=Model)
Value = int | str | datetime
# Numbers that no literal of a query has and that a key of 32 bits still holds.
FIRST_STAND_IN = 2_000_000_000


class Prepared(Generic[M]):
    """A query whose SQL stays the same while its values change: `Prepared(build, digest=str)`, then `.first(digest=…)`.

    `build` gets one stand-in for each value and returns the rows as ever; wherever a stand-in turns up among the
    parameters, the caller's value goes each time. No row is kept: every call asks the database. So `build` must not
    look at the values, and none of them may be None, which would be other SQL. `TypeError` at the first use where a
    value never reaches the database. Rows that are to be locked need a transaction around every call, which Django
    checks only at the first.
    """

    def __init__(self, build: Callable[..., QuerySet[M]], **kinds: type[Value]) -> None:
        self._build = build
        self._kinds = kinds
        self._compiled: dict[str, _Compiled] = {}

    def first(self, **values: Value) -> M | None:
        """The first row; `build` should end with `[:1]`, so that no others are read."""
        return next(iter(self.rows(**values)), None)

    def rows(self, **values: Value) -> list[M]:
        connection = connections[DEFAULT_DB_ALIAS]
        compiled = self._compiled.get(connection.vendor)
        if compiled is None:
            compiled = self._compiled[connection.vendor] = self._compile(connection)
        ready = _Ready(compiled.bound_to(connection, values))
        return list(ModelIterable(cast("QuerySet[M]", ready)))

    def _compile(self, connection: BaseDatabaseWrapper) -> "_Compiled":
        stand_ins = {name: _stand_in(kind, place) for place, (name, kind) in enumerate(self._kinds.items())}
        compiler = self._build(**stand_ins).query.get_compiler(using=connection.alias)
        sql, given = compiler.as_sql()
        names = {_sent(connection, value): name for name, value in stand_ins.items()}
        slots = tuple(names.get(value, "") for value in given)
        if missing := set(names.values()) - set(slots):
            raise TypeError(f"{', '.join(missing)} of a prepared query never reaches the database")
        compiler.__class__ = type("PreparedCompiler", (_AsPrepared, type(compiler)), {})
        return _Compiled(compiler, sql, tuple(given), slots)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """`slots` names the value that goes to each parameter, "" where the parameter stays what it was."""

    compiler: SQLCompiler
    sql: str
    given: tuple[object, ...]
    slots: tuple[str, ...]

    def bound_to(self, connection: BaseDatabaseWrapper, values: Mapping[str, Value]) -> SQLCompiler:
        # A connection belongs to one thread, what was compiled to all of them.
        compiler = copy(self.compiler)
        compiler.connection = connection
        filled = zip(self.slots, self.given, strict=True)
        parameters = tuple(_like(value, _sent(connection, values[name])) if name else value for name, value in filled)
        cast("_AsPrepared", compiler).prepared = self.sql, parameters
        return compiler


class _AsPrepared:
    """Stands before a compiler's own class and answers with what is compiled already."""

    prepared: tuple[str, tuple[object, ...]]

    def as_sql(self, with_limits: bool = True, with_col_aliases: bool = False) -> tuple[str, tuple[object, ...]]:
        return self.prepared


class _Ready:
    """As much of a QuerySet as turning rows into models looks at."""

    _known_related_objects: dict[object, object] = {}

    def __init__(self, compiler: SQLCompiler) -> None:
        self.compiler = compiler
        self.db = compiler.using
        self.query = self

    def get_compiler(self, using: str) -> SQLCompiler:
        return self.compiler


def _stand_in(kind: type[Value], place: int) -> Value:
    if kind is int:
        return FIRST_STAND_IN + place
    return f"stand-in {place}" if kind is str else datetime(2900, 1, 1 + place, tzinfo=UTC)


def _sent(connection: BaseDatabaseWrapper, value: Value) -> object:
    """What the database's driver gets for it: SQLite has its times as text."""
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value


def _like(stand_in: object, value: object) -> object:
    """PostgreSQL's driver is told an integer's width by its type."""
    return type(stand_in)(value) if isinstance(stand_in, int) else value  # type: ignore[call-overload]
