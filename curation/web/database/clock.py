"""The database's clock. Times that machines compare with each other, such as leases, come from it alone: the clock of a
worker can be minutes wrong.

In a query it is `Now()`: the start of the statement on PostgreSQL, milliseconds on SQLite, a file of this machine.
"""

import time
from datetime import UTC, datetime

from django.db import connection


def database_now() -> datetime:
    """One short query on PostgreSQL; SQLite reads the clock of this machine, and so does this. It does not stand still
    in a transaction."""
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found.astimezone(UTC)


def database_seconds() -> float:
    return database_now().timestamp()


def seconds_ahead() -> float:
    """Return by how many seconds the clock of this machine is ahead of the database's."""
    return round(time.time() - database_seconds(), 3)
