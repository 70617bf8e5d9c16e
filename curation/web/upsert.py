"""Rows of a model by a statement that is put together once. Django builds and compiles an insert anew each time, which
takes several times as long as the database does; what is part of every model call is worth saying once."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, Model


class Upsert:
    """`Upsert(Model, columns).write(rows)`: every column but an automatic key is named (a relation as `run_id`), and
    each row gives its values in that order, as the model would hold them. Nothing is defaulted.

    With `unique`, a row that has these columns in common with one that is there takes its place, in the columns
    `update`: all others, unless told. No two rows of one `write` may have them in common. `ValueError` at the
    definition where a column has no value.
    """

    def __init__(
        self, model: type[Model], columns: Sequence[str], *, unique: Sequence[str] = (), update: Sequence[str] = ()
    ) -> None:
        fields: dict[str, Field[Any, Any]] = {field.attname: field for field in model._meta.concrete_fields}
        key = model._meta.pk
        if missing := set(fields) - set(columns) - ({key.attname} if key is model._meta.auto_field else set()):
            raise ValueError(f"{model.__name__}: no value for {', '.join(sorted(missing))}")
        self._fields = [fields[name] for name in columns]
        named = ", ".join(str(fields[name].column) for name in columns)
        self._into = f"INSERT INTO {model._meta.db_table} ({named}) VALUES "  # noqa: S608 - names of columns
        self._row = f"({', '.join(['%s'] * len(columns))})"
        self._after = f" RETURNING {key.column}"
        if unique:
            anew = ", ".join(f"{name} = excluded.{name}" for name in update or columns if name not in unique)
            self._after = f" ON CONFLICT ({', '.join(unique)}) DO UPDATE SET {anew}{self._after}"

    def write(self, rows: Sequence[Sequence[object]]) -> list[Any]:
        """The keys of the rows, in their order."""
        if not rows:
            return []
        values = [
            field.get_db_prep_save(value, connection)
            for row in rows
            for field, value in zip(self._fields, row, strict=True)
        ]
        with connection.cursor() as cursor:
            cursor.execute(f"{self._into}{', '.join([self._row] * len(rows))}{self._after}", values)
            return [row[0] for row in cursor.fetchall()]
