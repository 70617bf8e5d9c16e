"""Scenarios that need worker processes run in a database and data folder of their own, beside the test database."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def own_database() -> Iterator[str]:
    """The URL of a new database on the PostgreSQL that DATABASE_URL names; empty (SQLite) where it names none."""
    given = urlsplit(os.environ.get("DATABASE_URL", ""))
    if not given.scheme.startswith("postgres"):
        yield ""
        return
    name = f"winnow_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(urlunsplit(given), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlunsplit(given._replace(path=f"/{name}"))
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def run_elsewhere(module: str, *arguments: str, folder: Path, database: str, broker: str = "") -> dict[str, Any]:
    """The JSON that the scenario printed; what its workers said is in the failure's output."""
    environment = {
        **os.environ,
        "WINNOW_DATA": str(folder),
        "DATABASE_URL": database,
        "CELERY_BROKER_URL": broker,
        "LOG_LEVEL": "INFO",
        "PYTEST_CURRENT_TEST": "",
    }
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        logs = [f"{log.name}:\n{log.read_text(errors='replace')[-4000:]}" for log in sorted(folder.glob("*.log"))]
        raise AssertionError("\n".join([done.stderr[-4000:], *logs]))
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found
