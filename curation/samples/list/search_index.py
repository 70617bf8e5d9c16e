"""The full-text index over `SampleText.body`, and indexes of trajectories that Django cannot declare.

The database keeps the full-text index up to date by itself. SQLite: an FTS5 table over `samples_sampletext` (external
content), with triggers. PostgreSQL: a generated column with a GIN index. Both split at everything that is no letter or
digit, so that `billing` finds `src/billing.py`.

A migration that alters a table makes it again on SQLite, which drops its triggers and indexes. So they are not part of
a migration: `create_missing` runs after every `migrate`, and the system check `samples.W001` reports missing ones.
"""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

SQLITE = {
    "sample_search": """
        CREATE VIRTUAL TABLE sample_search USING fts5(
            body, content='samples_sampletext', content_rowid='sample_id', prefix='2 3',
            tokenize='unicode61 remove_diacritics 0'
        )""",
    "sample_search_insert": """
        CREATE TRIGGER sample_search_insert AFTER INSERT ON samples_sampletext BEGIN
            INSERT INTO sample_search(rowid, body) VALUES (new.sample_id, new.body);
        END""",
    "sample_search_delete": """
        CREATE TRIGGER sample_search_delete AFTER DELETE ON samples_sampletext BEGIN
            INSERT INTO sample_search(sample_search, rowid, body) VALUES ('delete', old.sample_id, old.body);
        END""",
    "sample_search_update": """
        CREATE TRIGGER sample_search_update AFTER UPDATE OF body ON samples_sampletext
        WHEN old.body IS NOT new.body BEGIN
            INSERT INTO sample_search(sample_search, rowid, body) VALUES ('delete', old.sample_id, old.body);
            INSERT INTO sample_search(rowid, body) VALUES (new.sample_id, new.body);
        END""",
    # The list of trajectories. `kind` is in the index, though it is always the same: SQLite would prefer `sample_list`
    # otherwise. The axes are in it so that a list by axis reads no other rows.
    "sample_trajectories": """
        CREATE INDEX sample_trajectories ON samples_sample (project_id, kind, id, axes) WHERE kind = 'trajectory'""",
}
REBUILD = "INSERT INTO sample_search(sample_search) VALUES ('rebuild')"
# PostgreSQL's parser keeps paths and hyphenated words whole, so all 32 punctuation marks of ASCII become spaces.
PUNCTUATION = r"""!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~"""
POSTGRESQL = {
    "words": f"""
        ALTER TABLE samples_sampletext ADD COLUMN words tsvector GENERATED ALWAYS AS (
            to_tsvector('simple'::regconfig, translate(body, '{PUNCTUATION}', repeat(' ', 32)))
        ) STORED""",
    "sample_search": "CREATE INDEX sample_search ON samples_sampletext USING gin (words)",
    "sample_trajectories": """
        CREATE INDEX sample_trajectories ON samples_sample (project_id, kind, id) WHERE kind = 'trajectory'""",
    "sample_list_axes": """
        CREATE INDEX sample_list_axes ON samples_sample USING gin (axes jsonb_path_ops) WHERE kind = 'trajectory'""",
}
PRESENT = {
    "sqlite": "SELECT name FROM sqlite_master",
    "postgresql": """
        SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() UNION ALL
        SELECT column_name FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = 'samples_sampletext'""",
}


def create_missing(using: str, **_: object) -> None:
    """Create the missing objects, and index the rows that are there. Called after every `migrate`."""
    connection = connections[using]
    missing = _missing(connection)
    with connection.cursor() as cursor:
        for statement in missing.values():
            cursor.execute(statement)
        if connection.vendor == "sqlite" and any(name.startswith("sample_search") for name in missing):
            cursor.execute(REBUILD)


def check_search_index(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None, **_: Any
) -> list[CheckMessage]:
    """Report missing parts of the index; runs where Django checks the database (`migrate`, `check --database`)."""
    return [
        Warning(f"The search index has no {name!r}.", hint="Run `manage.py migrate`.", id="samples.W001")
        for using in databases or []
        for name in _missing(connections[using])
    ]


def _missing(connection: BaseDatabaseWrapper) -> dict[str, str]:
    """Return the statements of the missing objects, by name; none before the tables are there."""
    if "samples_sampletext" not in connection.introspection.table_names():
        return {}
    with connection.cursor() as cursor:
        cursor.execute(PRESENT[connection.vendor])
        present = {row[0] for row in cursor.fetchall()}
    statements = SQLITE if connection.vendor == "sqlite" else POSTGRESQL
    return {name: statement for name, statement in statements.items() if name not in present}
