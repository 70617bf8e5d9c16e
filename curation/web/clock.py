"""The database's clock. Times that machines compare with each other, such as leases, come from it alone: the clock of a
worker can be minutes wrong.

In a query it is `Now()`: the start of the statement on PostgreSQL, milliseconds on SQLite, a file of this machine.
"""

from datetime import UTC, datetime

from django.db import connection

# The time of the call, not of the transaction's start.
SQL = {"postgresql": "SELECT clock_timestamp()", "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')"}


def database_now() -> datetime:
    """One short query. It does not stand still in a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(SQL[connection.vendor])
        found: datetime | str = cursor.fetchone()[0]
    return datetime.fromisoformat(found).replace(tzinfo=UTC) if isinstance(found, str) else found.astimezone(UTC)


def database_seconds() -> float:
    """Return the same as Unix seconds."""
    return database_now().timestamp()
