"""Conditions of samples as their indexes write them."""

import json

import orjson
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler


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
