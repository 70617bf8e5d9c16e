"""`python -m tests.deploy.schema`: migrates an empty database, one migration after the other, and prints its schema."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator

import django

POSTGRES = (
    "select tablename, indexname, indexdef from pg_indexes where schemaname = 'public'",
    "select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint",
)
SQLITE = ("select tbl_name, name, sql from sqlite_master where type <> 'table' and sql is not null",)
MIGRATIONS = ("select app, name from django_migrations",)


def schema() -> Iterator[str]:
    """Yield columns, constraints, indexes and applied migrations."""
    from django.db import connection

    engine = POSTGRES if connection.vendor == "postgresql" else SQLITE
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            for column in connection.introspection.get_table_description(cursor, table):
                # Migrations give the tables between users, groups and permissions ids of 8 bytes, Django's models of 4.
                if not (column.name == "id" and table.startswith("auth_")):
                    yield f"{table} {tuple(column)}"
            for name, what in connection.introspection.get_constraints(cursor, table).items():
                # SQLite numbers those without a name.
                yield f"{table} {re.sub(r'^fk_[0-9]+$|^__.*__$', '', name)} {what}"
        for query in engine + MIGRATIONS:
            cursor.execute(query)
            yield from map(repr, cursor.fetchall())


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command

    # With tables of an app in it, the database is no empty one, which would get all at once.
    call_command("migrate", "contenttypes", verbosity=0)
    call_command("migrate", verbosity=0)
    print(json.dumps(Counter(schema())))


if __name__ == "__main__":
    main()
