"""`id IN (…)` for many ids as one parameter. Django prepares each value of a list by itself, which costs more than the
database takes to find the rows."""

from collections.abc import Sequence
from typing import Any, ClassVar

import orjson
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, Field, Func, TextField
from django.db.models.sql.compiler import SQLCompiler


def id_parameter(connection: BaseDatabaseWrapper, values: Sequence[int] | Sequence[str]) -> str | list[int | str]:
    """Return the values as the one parameter of an `IdList`."""
    return orjson.dumps(values).decode() if connection.vendor == "sqlite" else list(values)


class IdList(Func):
    """`rows.filter(sample_id__in=IdList(ids))`; any number of ids."""

    of: ClassVar["tuple[type[Field[Any, Any]], str]"] = (BigIntegerField, "bigint")

    def __init__(self, values: Sequence[int] | Sequence[str]) -> None:
        super().__init__(output_field=self.of[0]())
        self.values = values

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object) -> tuple[str, tuple[Any]]:
        return "(SELECT value FROM json_each(%s))", (id_parameter(connection, self.values),)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, list[Any]]:
        return f"(SELECT unnest(%s::{self.of[1]}[]))", [id_parameter(connection, self.values)]


class KeyList(IdList):
    """The same for text, such as hashes."""

    of = (TextField, "text")
