"""Triggers, indexes and columns that Django cannot declare.

A migration that alters a table makes it again on SQLite, which drops its triggers and indexes. So they are not part of
a migration: the missing ones are created after every `migrate`, and a system check reports them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import post_migrate

PRESENT = {
    "sqlite": "SELECT name FROM sqlite_master",
    "postgresql": """
        SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() UNION ALL
        SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = current_schema() UNION ALL
        SELECT column_name FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = %s""",
}


@dataclass(frozen=True, kw_only=True)
class SchemaObjects:
    """Objects of one table: by the database's vendor, the statements that create them, by their names.

    `created` is called with the connection and the names of those that were missing. `check` is the id of the warning.
    """

    table: str
    called: str
    check: str
    statements: Mapping[str, Mapping[str, str]]
    created: Callable[[BaseDatabaseWrapper, Sequence[str]], None] | None = None

    def connect(self, app: AppConfig) -> None:
        post_migrate.connect(self.create_missing, sender=app, dispatch_uid=self.check)

        def check(
            app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None, **_: Any
        ) -> list[CheckMessage]:
            return [warning for using in databases or [] for warning in self.warnings(using)]

        register(check, Tags.database)

    def create_missing(self, using: str, **_: object) -> None:
        connection = connections[using]
        missing = self._missing(connection)
        with connection.cursor() as cursor:
            for statement in missing.values():
                cursor.execute(statement)
        if missing and self.created:
            self.created(connection, list(missing))

    def warnings(self, using: str) -> list[CheckMessage]:
        """Report missing objects, where Django checks the database (`migrate`, `check --database`)."""
        return [
            Warning(f"{self.called} has no {name!r}.", hint="Run `manage.py migrate`.", id=self.check)
            for name in self._missing(connections[using])
        ]

    def _missing(self, connection: BaseDatabaseWrapper) -> dict[str, str]:
        """Return the statements of the missing objects, by name; none before the table is there."""
        if self.table not in connection.introspection.table_names():
            return {}
        with connection.cursor() as cursor:
            cursor.execute(PRESENT[connection.vendor], [self.table] if connection.vendor == "postgresql" else [])
            present = {row[0] for row in cursor.fetchall()}
        return {name: sql for name, sql in self.statements[connection.vendor].items() if name not in present}
