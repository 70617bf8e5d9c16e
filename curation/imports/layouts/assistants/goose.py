"""Sessions of Goose: rows of its database `sessions.db`, exported as JSON, or a file with a message in each line."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.messages.calls import decoded
from curation.imports.layouts.messages.documents import one_session
from curation.imports.layouts.messages.read import listed, read_messages
from curation.imports.layouts.session import Json, SessionOrigin, agent_of
from curation.imports.sources.rows import RowRefused

NAME = "Goose session"
MAGIC = b"SQLite format 3\0"
_HIDDEN = "ignored: the agent does not see it (metadata.agentVisible)"
_TOTALS = {
    "total_prompt_tokens": ("accumulated_input_tokens", "input_tokens"),
    "total_completion_tokens": ("accumulated_output_tokens", "output_tokens"),
    "total_cached_tokens": ("accumulated_cache_read_tokens", "cache_read_tokens"),
    "total_cost_usd": ("accumulated_cost",),
}
_TABLES = ("sessions", "messages")
# Columns with JSON, by their names in a session that Goose exports.
_JSON = {
    **{"extension_data": "extension_data", "recipe_json": "recipe", "model_config_json": "model_config"},
    "user_recipe_values_json": "user_recipe_values",
}


def fits(document: Mapping[str, Any]) -> bool:
    return (
        isinstance(document.get("conversation"), list | None) and {"working_dir", "extension_data"} <= document.keys()
    )


def read(document: Mapping[str, Any]) -> DocumentReading:
    """Return a session. Raises `RowRefused`."""
    fields = Fields(document)
    messages = []
    for index, one in enumerate(listed(fields.take("conversation", "steps"), "conversation")):
        about = one.get("metadata") or {}
        if about.get("agentVisible") is False:
            fields.became("conversation[].role", _HIDDEN)
            continue
        fields.ignore_rest(one, ("role", "content", "created", "metadata"), f"conversation.{index}")
        messages.append({"role": one.get("role"), "content": one.get("content"), "created": one.get("created")})
    found = read_messages(messages, "conversation", fields)
    totals: Json = {}
    for total, names in _TOTALS.items():
        values = [value for name in names if (value := fields.take(name, "usage")) is not None]
        totals |= {total: values[0]} if values else {}
    config = fields.take("model_config", "agent")
    model = config.get("model_name") if isinstance(config, dict) else None
    origin = SessionOrigin(id=str(fields.take("id", "id") or ""))
    agent = agent_of("goose", model=str(model or ""))
    return one_session(NAME, agent, found, fields, totals=totals, origin=origin)


def sessions_in(path: Path, longest: int) -> Iterator[Json]:
    """Yield the sessions of a database, as Goose exports them. It is only read, and no code in it runs. Raises
    `RowRefused` for another database, and for a session of more than `longest` bytes."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
            database.execute("PRAGMA trusted_schema = OFF")
            database.text_factory = lambda text: text.decode(errors="replace")
            database.row_factory = sqlite3.Row
            yield from _sessions(database, longest)
    except sqlite3.Error as error:
        raise RowRefused(f"the database cannot be read: {error}"[:300]) from None


def _sessions(database: sqlite3.Connection, longest: int) -> Iterator[Json]:
    tables = {row["name"]: row["sql"] or "" for row in database.execute("SELECT name, sql FROM sqlite_master")}
    if not all(tables.get(name, "").lstrip().upper().startswith("CREATE TABLE") for name in _TABLES):
        raise RowRefused(
            "the database has no tables sessions and messages: only those of Goose are read. Export the sessions of "
            "another program, such as with `opencode export`"
        )
    rows = database.execute("SELECT * FROM messages ORDER BY session_id, id")
    for identifier, of_session in groupby(rows, key=lambda row: row["session_id"]):
        about = database.execute("SELECT * FROM sessions WHERE id = ?", [identifier]).fetchone()
        known = {} if about is None else {name: about[name] for name in about.keys()}  # noqa: SIM118 - a row of SQLite
        session = {_JSON.get(name, name): decoded(value) if name in _JSON else value for name, value in known.items()}
        messages: list[Json] = []
        size = 0
        for row in of_session:
            size += len(row["content_json"])
            if size > longest:
                raise RowRefused(f"the session {identifier} has more than {longest:,} bytes")
            messages.append(_message(row))
        yield {"working_dir": "", "extension_data": {}, **session, "id": identifier, "conversation": messages}


def _message(row: sqlite3.Row) -> Json:
    names: Sequence[str] = row.keys()
    metadata = decoded(row["metadata_json"]) if "metadata_json" in names else None
    return {
        "role": row["role"],
        "content": decoded(row["content_json"]),
        "created": row["created_timestamp"],
        "metadata": metadata if isinstance(metadata, dict) else {},
    }
