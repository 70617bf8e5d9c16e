"""The full-text index over `SampleText.body`, kept by the database itself: whoever writes the text need not think of it.

SQLite: an FTS5 table that holds the words and takes the text from `samples_sampletext` (external content), with
triggers. A later migration that alters `SampleText` makes its table anew on SQLite, which drops the triggers: it
must run this file's statements again. PostgreSQL: a generated column with a GIN index.

Both split at everything that is no letter or digit, so that `src/billing.py` is found by `billing`.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

SQLITE = [
    """
    CREATE VIRTUAL TABLE sample_search USING fts5(
        body, content='samples_sampletext', content_rowid='sample_id', prefix='2 3',
        tokenize='unicode61 remove_diacritics 0'
    )
    """,
    """
    CREATE TRIGGER sample_search_insert AFTER INSERT ON samples_sampletext BEGIN
        INSERT INTO sample_search(rowid, body) VALUES (new.sample_id, new.body);
    END
    """,
    """
    CREATE TRIGGER sample_search_delete AFTER DELETE ON samples_sampletext BEGIN
        INSERT INTO sample_search(sample_search, rowid, body) VALUES ('delete', old.sample_id, old.body);
    END
    """,
    """
    CREATE TRIGGER sample_search_update AFTER UPDATE OF body ON samples_sampletext WHEN old.body IS NOT new.body BEGIN
        INSERT INTO sample_search(sample_search, rowid, body) VALUES ('delete', old.sample_id, old.body);
        INSERT INTO sample_search(rowid, body) VALUES (new.sample_id, new.body);
    END
    """,
    "INSERT INTO sample_search(sample_search) VALUES ('rebuild')",
    # The list of trajectories, with the axes in the index: a list by axis then reads no other rows.
    "DROP INDEX sample_trajectories",
    "CREATE INDEX sample_trajectories ON samples_sample (project_id, kind, id, axes) WHERE kind = 'trajectory'",
]
SQLITE_BACK = [
    "DROP INDEX sample_trajectories",
    "CREATE INDEX sample_trajectories ON samples_sample (project_id, kind, id) WHERE kind = 'trajectory'",
    "DROP TRIGGER sample_search_insert",
    "DROP TRIGGER sample_search_delete",
    "DROP TRIGGER sample_search_update",
    "DROP TABLE sample_search",
]
# PostgreSQL's parser would keep a path or a hyphenated word whole; blanks instead of ASCII's punctuation part it.
# The list below: all 32 punctuation marks, the quote doubled.
PUNCTUATION = r"""!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~"""
POSTGRESQL = [
    f"""
    ALTER TABLE samples_sampletext ADD COLUMN words tsvector GENERATED ALWAYS AS (
        to_tsvector('simple'::regconfig, translate(body, '{PUNCTUATION}', repeat(' ', 32)))
    ) STORED
    """,
    "CREATE INDEX sample_search ON samples_sampletext USING gin (words)",
    "CREATE INDEX sample_list_axes ON samples_sample USING gin (axes jsonb_path_ops) WHERE kind = 'trajectory'",
]
POSTGRESQL_BACK = [
    "DROP INDEX sample_list_axes",
    "DROP INDEX sample_search",
    "ALTER TABLE samples_sampletext DROP COLUMN words",
]
FORWARD = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
BACK = {"sqlite": SQLITE_BACK, "postgresql": POSTGRESQL_BACK}


def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in FORWARD[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def drop(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in BACK[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("samples", "0002_lists")]
    operations = [migrations.RunPython(create, drop)]
