"""The full-text index over `SampleText.body`, and indexes of trajectories that Django cannot declare.

The database keeps the full-text index up to date by itself. SQLite: an FTS5 table over `samples_sampletext` (external
content), with triggers. PostgreSQL: a generated column with a GIN index. Both split at everything that is no letter or
digit, so that `billing` finds `src/billing.py`.
"""

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from curation.web.database.schema_objects import SchemaObjects

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


def index_rows(connection: BaseDatabaseWrapper, made: Sequence[str]) -> None:
    """Index the rows that were there before the index."""
    if connection.vendor == "sqlite" and any(name.startswith("sample_search") for name in made):
        with connection.cursor() as cursor:
            cursor.execute(REBUILD)


SEARCH_INDEX = SchemaObjects(
    table="samples_sampletext",
    called="The search index",
    check="samples.W001",
    statements={"sqlite": SQLITE, "postgresql": POSTGRESQL},
    created=index_rows,
)
