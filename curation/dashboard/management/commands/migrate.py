"""`manage.py migrate`: an empty database gets all tables at once.

Django applies each migration in turn, which takes ten times as long. The tables are the same, which a test compares.
"""

from django.apps import apps
from django.core.management.commands import migrate
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

# With one of these the user asks for migrations one by one, or for none.
ONE_BY_ONE = ("app_label", "plan", "check_unapplied", "fake", "fake_initial", "prune")


class Command(migrate.Command):
    def handle(self, *args: object, database: str, verbosity: int, **options: object) -> None:
        connection = connections[database]
        self.verbosity = verbosity
        if not any(options[name] for name in ONE_BY_ONE) and not connection.introspection.table_names():
            self._make_tables(connection)
        super().handle(*args, database=database, verbosity=verbosity, **options)

    def _make_tables(self, connection: BaseDatabaseWrapper) -> None:
        """Make all tables and record all migrations as applied, or nothing."""
        loader, recorder = MigrationLoader(connection), MigrationRecorder(connection)
        migrated = {app for app, _ in loader.disk_migrations}
        # SQLite needs the checks off before the transaction begins.
        with connection.constraint_checks_disabled(), transaction.atomic(connection.alias):
            self.sync_apps(connection, [config.label for config in apps.get_app_configs() if config.label in migrated])
            recorder.ensure_schema()
            for key, migration in loader.disk_migrations.items():
                for app, name in (key, *migration.replaces):
                    recorder.record_applied(app, name)
