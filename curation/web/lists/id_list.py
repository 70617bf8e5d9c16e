"""`id IN (…)` for many ids as one parameter. Django prepares each value of a list by itself, which costs more than the
database takes to find the rows."""

from collections.abc import Sequence

import orjson
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, Func
from django.db.models.sql.compiler import SQLCompiler


class IdList(Func):
    """`rows.filter(sample_id__in=IdList(ids))`; any number of ids."""

    def __init__(self, ids: Sequence[int]) -> None:
        super().__init__(output_field=BigIntegerField())
        self.ids = ids

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object) -> tuple[str, tuple[str]]:
        return "(SELECT value FROM json_each(%s))", (orjson.dumps(self.ids).decode(),)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, list[list[int]]]:
        return "(SELECT unnest(%s::bigint[]))", [list(self.ids)]
