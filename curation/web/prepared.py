"""Reads whose SQL is compiled once.

Django spends 0.2 to 1.7 ms on building and compiling a query that the database answers in a twentieth of that. Use this
only for a read that every pair of taking and deciding makes, and only where the pair becomes measurably slower without.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.query import RelatedPopulator, get_related_populators
from django.db.models.sql.compiler import SQLCompiler

M = TypeVar("M", bound=Model)
Value = int | str | datetime
# No literal of a query is this large, and a 32-bit key still fits.
FIRST_STAND_IN = 2_000_000_000


class Prepared(Generic[M]):
    """A query whose SQL stays the same while its values change: `Prepared(build, digest=str)`, then `.first(digest=…)`.

    `build` gets a stand-in for each value and returns the query; each stand-in among the query's parameters is replaced
    by the caller's value. Rows are read from the database every time. `build` must not look at the values, and no value
    may be None, which would need other SQL. Raises `TypeError` at the first use if a value never reaches the database.
    A query that locks rows needs a transaction around every call; Django checks this at the first call only.
    """

    def __init__(self, build: Callable[..., QuerySet[M]], **kinds: type[Value]) -> None:
        self._build = build
        self._kinds = kinds
        self._compiled: dict[str, _Compiled[M]] = {}

    def first(self, **values: Value) -> M | None:
        """Return the query's first row."""
        connection = connections[DEFAULT_DB_ALIAS]
        compiled = self._compiled.get(connection.vendor)
        if compiled is None:
            compiled = self._compiled[connection.vendor] = self._compile(connection)
        parameters = list(compiled.given)
        for place, name in compiled.places:
            parameters[place] = _adapted(connection, values[name])
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, parameters)
            row = cursor.fetchone()
        return None if row is None else compiled.instance(row, connection)

    def _compile(self, connection: BaseDatabaseWrapper) -> "_Compiled[M]":
        stand_ins = {name: _stand_in(kind, number) for number, (name, kind) in enumerate(self._kinds.items())}
        query = self._build(**stand_ins)[:1]
        compiler = query.query.get_compiler(using=connection.alias)
        sql, given = compiler.as_sql()
        known = {_adapted(connection, value): name for name, value in stand_ins.items()}
        places = [(place, known[value]) for place, value in enumerate(given) if value in known]
        if missing := set(stand_ins) - {name for _, name in places}:
            raise TypeError(f"{', '.join(missing)} of a prepared query never reaches the database")
        columns = compiler.klass_info["select_fields"]
        # Unpacked, because django-stubs describe a later Django with one more argument.
        populators = get_related_populators(*[compiler.klass_info, compiler.select, connection.alias])
        attributes = [compiler.select[column][0].target.attname for column in columns]
        annotations = compiler.annotation_col_map
        return _Compiled(compiler, sql, given, places, query.model, columns[0], attributes, populators, annotations)


@dataclass(frozen=True, slots=True)
class _Compiled(Generic[M]):
    """`places` says which of the parameters are values, and of what name.

    The model's own columns start at `start`; `populators` read the columns of `select_related`,
    `annotations` names the columns of annotations.
    """

    compiler: SQLCompiler
    sql: str
    given: Sequence[Any]
    places: Sequence[tuple[int, str]]
    model: type[M]
    start: int
    attributes: Sequence[str]
    populators: Sequence[RelatedPopulator]
    annotations: Mapping[str, int]

    def instance(self, row: tuple[Any, ...], connection: BaseDatabaseWrapper) -> M:
        # A connection belongs to one thread; the compiled query is shared by all.
        compiler = copy(self.compiler)
        compiler.connection = connection
        (converted,) = compiler.results_iter([[row]])
        columns = converted[self.start : self.start + len(self.attributes)]
        found = self.model.from_db(connection.alias, self.attributes, columns)
        for populator in self.populators:
            populator.populate(converted, found)
        for name, column in self.annotations.items():
            setattr(found, name, converted[column])
        return found


def _stand_in(kind: type[Value], number: int) -> Value:
    if kind is int:
        return FIRST_STAND_IN + number
    return f"stand-in {number}" if kind is str else datetime(2900, 1, 1 + number, tzinfo=UTC)


def _adapted(connection: BaseDatabaseWrapper, value: Value) -> Any:
    """Return the value as the driver takes it: SQLite stores times as text."""
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
