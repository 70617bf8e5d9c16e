"""Rows straight into a table: one prepared statement for thousands of rows.

Django's `bulk_create` builds and adapts an object per row, which alone costs more than reading the row did. Values are
given as the database takes them: JSON as text (`as_json`), times by `now_value`.
"""

from collections.abc import Iterable, Sequence

import orjson
from django.db import connection
from django.db.models import Model
from django.utils import timezone


def reserve_ids(model: type[Model], count: int) -> range | list[int]:
    """Ids for rows that are about to be inserted in the same transaction, ascending."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # The transaction holds the database's one write lock since its BEGIN IMMEDIATE.
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
            found = cursor.fetchone()
            first = (found[0] if found else 0) + 1
            return range(first, first + count)
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [f'"{table}"', count]
        )
        return [row[0] for row in cursor.fetchall()]


def insert_rows(model: type[Model], fields: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Needs a transaction; nothing is defaulted, so `fields` names every column of the table."""
    columns = [model._meta.get_field(name).column for name in fields]
    missing = {field.column for field in model._meta.concrete_fields} - set(columns)
    if missing:
        raise ValueError(f"{model.__name__}: no value for {', '.join(sorted(missing))}")
    named = ", ".join(connection.ops.quote_name(column) for column in columns)
    signs = ", ".join(["%s"] * len(columns))
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} ({named}) VALUES ({signs})", list(rows))  # noqa: S608 - names of columns


def as_json(value: object) -> str:
    return orjson.dumps(value).decode()


def now_value() -> object:
    """The present moment as the database stores it."""
    return connection.ops.adapt_datetimefield_value(timezone.now())
