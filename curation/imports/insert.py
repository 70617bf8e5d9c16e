"""Rows straight into a table: COPY on PostgreSQL, one prepared statement for thousands of rows on SQLite.

Django's `bulk_create` builds and adapts an object per row, which alone costs more than reading the row did. Values are
given as the database takes them: JSON as text (`as_json`), times by `now_value`.
"""

from collections.abc import Sequence
from datetime import datetime

import orjson
from django.db import connection
from django.db.models import Model
from django.utils import timezone

Value = str | int | datetime | None


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


def insert_rows(model: type[Model], fields: Sequence[str], rows: Sequence[Sequence[Value]]) -> None:
    """Needs a transaction; nothing is defaulted, so `fields` names every column of the table."""
    column_of = {field.name: str(field.column) for field in model._meta.concrete_fields}
    columns = [column_of[name] for name in fields]
    missing = set(column_of) - set(fields)
    if missing:
        raise ValueError(f"{model.__name__}: no value for {', '.join(sorted(missing))}")
    named = ", ".join(connection.ops.quote_name(column) for column in columns)
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({named}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            return
        signs = ", ".join(["%s"] * len(columns))
        cursor.executemany(f"INSERT INTO {table} ({named}) VALUES ({signs})", rows)  # noqa: S608 - names of columns


def as_json(value: object) -> str:
    return orjson.dumps(value).decode()


def now_value() -> Value:
    """The present moment as the database stores it."""
    value: Value = connection.ops.adapt_datetimefield_value(timezone.now())
    return value
