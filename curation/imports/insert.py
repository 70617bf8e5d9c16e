"""Insert the rows of an import: COPY on PostgreSQL, one prepared statement for thousands of rows on SQLite.

Everything else writes with `bulk_create`, which is too slow here. On SQLite, imports must write 10,000 rows per second:
with `bulk_create` they write 9,400 pull-request records or 8,300 small turn rows per second of processor time, with
this module 23,600 and 24,200 (`benchmarks/imports.py`). `bulk_create` builds a model instance per row and prepares
each value by itself.

Values are given as the database takes them: JSON as text (`as_json`), times from `now_value`.
"""

from collections.abc import Sequence
from datetime import datetime

import orjson
from django.db import connection
from django.db.models import Model
from django.utils import timezone

Value = str | int | datetime | None


def reserve_ids(model: type[Model], count: int) -> range | list[int]:
    """Reserve ascending ids for rows that the same transaction inserts."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # No other transaction can write: this one took the write lock with BEGIN IMMEDIATE.
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
            found = cursor.fetchone()
            first = (found[0] if found else 0) + 1
            return range(first, first + count)
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [f'"{table}"', count]
        )
        return [row[0] for row in cursor.fetchall()]


def insert_rows(model: type[Model], fields: Sequence[str], rows: Sequence[Sequence[Value]]) -> None:
    """Insert the rows, in a transaction. `fields` names every column of the table: no default is filled in."""
    column_of = {field.name: str(field.column) for field in model._meta.concrete_fields}
    columns = [column_of[name] for name in fields]
    if missing := set(column_of) - set(fields):
        raise ValueError(f"{model.__name__}: no value for {', '.join(sorted(missing))}")
    names = ", ".join(connection.ops.quote_name(column) for column in columns)
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            return
        placeholders = ", ".join(["%s"] * len(columns))
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({placeholders})", rows)  # noqa: S608 - names of columns


def as_json(value: object) -> str:
    return orjson.dumps(value).decode()


def now_value() -> Value:
    """Return the current time in the database's form."""
    value: Value = connection.ops.adapt_datetimefield_value(timezone.now())
    return value
