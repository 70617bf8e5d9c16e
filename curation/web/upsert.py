"""Rows of a model by a statement that is put together once. Django builds and compiles an insert anew each time, which
takes several times as long as the database does; what is part of every model call is worth saying once."""

from collections.abc import Collection, Sequence
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Field, Model

M = TypeVar("M", bound=Model)


class Upsert(Generic[M]):
    """`Upsert(Model, columns).write(rows)`: each row gives its values in the order of the columns (a relation as
    `run_id`), as the model would hold them, and nothing is defaulted. `Upsert(Model).save(instances)` where there are
    instances.

    With `unique`, a row that has these columns in common with one that is there takes its place, but for the columns
    `kept`. No two rows of one `write` may have them in common. `ValueError` at the definition where a column other
    than an automatic key is left out.
    """

    def __init__(
        self,
        model: type[M],
        columns: Sequence[str] | None = None,
        *,
        unique: Sequence[str] = (),
        kept: Collection[str] = (),
    ) -> None:
        key = model._meta.pk
        fields: dict[str, Field[Any, Any]] = {
            field.attname: field for field in model._meta.concrete_fields if field is not model._meta.auto_field
        }
        columns = list(fields) if columns is None else columns
        if missing := set(fields) - set(columns):
            raise ValueError(f"{model.__name__}: no value for {', '.join(sorted(missing))}")
        self._fields = [fields[name] for name in columns]
        named = ", ".join(f'"{name}"' for name in columns)
        self._into = f'INSERT INTO "{model._meta.db_table}" ({named}) VALUES '  # noqa: S608 - names of columns
        self._row = f"({', '.join(['%s'] * len(columns))})"
        self._after = f' RETURNING "{key.attname}"'
        if unique:
            same = ", ".join(f'"{name}"' for name in unique)
            anew = ", ".join(f'"{name}" = excluded."{name}"' for name in columns if name not in {*unique, *kept})
            self._after = f" ON CONFLICT ({same}) DO UPDATE SET {anew}{self._after}"

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

    def save(self, instances: Sequence[M]) -> None:
        """Writes the instances' rows and gives each its key."""
        rows = [[field.pre_save(instance, add=True) for field in self._fields] for instance in instances]
        for instance, key in zip(instances, self.write(rows), strict=True):
            instance.pk = key
