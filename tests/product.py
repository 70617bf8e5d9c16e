"""The product as a newcomer starts it: `manage.py demo` with its own processes, data folder and port.

It uses SQLite and the embedded broker, unless `DATABASE_URL` names a PostgreSQL (it makes a database there and drops it
at the end) or `TEST_BROKER_URL` a Redis.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from tests.parts import PARTS
from tests.serving import free_port

ROOT = Path(__file__).resolve().parent.parent
STARTS_WITHIN, STOPS_WITHIN = 600.0, 40.0
SCOPES = "read,review,run,export,admin"


class Product:
    """A running Winnow with the project `demo`, login `demo` / `demo`; `api` speaks REST with all scopes, as does who
    has its token, `secret`."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._database = _own_database()
        self.environment = _environment(data, self.port, self._database)
        self._log = data / "demo.log"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "demo"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.wait_for_line("Winnow answers")
        self.secret = self.token(SCOPES)
        headers = {"Authorization": f"Bearer {self.secret}"}
        self.api = httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=60)

    def wait_for_line(self, words: str) -> None:
        """Wait until the demo says so: that it answers, or, when its project is complete, that it is ready."""
        until = time.monotonic() + STARTS_WITHIN
        while words not in (said := self._log.read_text(errors="replace")):
            if self._process.poll() is not None or time.monotonic() > until:
                self.stop()
                pytest.fail(f"the product did not start:\n{said[-2000:]}", pytrace=False)
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop it as Ctrl+C would: the supervisor ends web and worker, then itself."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOPS_WITHIN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._database:
            _drop(self._database)

    def manage(self, *words: str) -> str:
        """Run a management command and return its standard output."""
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=True, timeout=STARTS_WITHIN
        ).stdout.strip()

    def token(self, scopes: str) -> str:
        return self.manage("token", "create", "--user", "demo", "--scopes", scopes)

    def get(self, path: str, **params: str | int) -> Any:
        answer = self.api.get(path, params=params)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:500]}"
        return answer.json()

    def rows(self, path: str, **params: str | int) -> list[dict[str, Any]]:
        """Return all rows of a list, page by page."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while True:
            page = self.get(path, limit=200, **params, **cursor)
            found += page["data"]
            if page["next_cursor"] is None:
                return found
            cursor = {"cursor": page["next_cursor"]}

    def wait(self, run: dict[str, Any], *, seconds: float = 120) -> dict[str, Any]:
        """Wait for the end of a run and return it."""
        until = time.monotonic() + seconds
        while run["state"] in ("queued", "running"):
            assert time.monotonic() < until, f"run {run['id']} is still {run['state']}: {json.dumps(run['items'])}"
            time.sleep(0.2)
            run = self.get(f"/runs/{run['id']}")
        return run


def _environment(data: Path, port: int, database: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "WINNOW_"))}
    for inherited in ("DATABASE_URL", "CELERY_BROKER_URL", "FILES_URL", "BIND", "HTTPS"):
        environment.pop(inherited, None)
    if database:
        environment["DATABASE_URL"] = database
    if os.environ.get("TEST_BROKER_URL") and PARTS["redis"]() is None:
        # Each installation uses its own database in Redis, or workers would receive each other's messages.
        number = 1 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        environment["CELERY_BROKER_URL"] = urlsplit(os.environ["TEST_BROKER_URL"])._replace(path=f"/{number}").geturl()
    if PARTS["bubblewrap"]() is None:
        # Its sandboxes cost a third of Docker's, which the tests of sandboxes and of the gate use.
        environment["SANDBOX"] = "bubblewrap"
    # Its trials are bubblewrap sandboxes: `test_harbor_tutorial.py`.
    environment["HARBOR_COMMAND"] = f"env PYTHONPATH={ROOT} {sys.executable} -m tests.e2e.harbor_in_rooms"
    return environment | {"WINNOW_DATA": str(data), "PORT": str(port), "WEB_PROCESSES": "2"}


def _own_database() -> str:
    """Make a database on the server of `DATABASE_URL` and return its URL; empty if that is no PostgreSQL."""
    if PARTS["postgres"]() is not None:
        return ""
    url = os.environ["DATABASE_URL"]
    name = f"winnow_e2e_{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def _drop(database: str) -> None:
    name = urlsplit(database).path.removeprefix("/")
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@pytest.fixture(scope="session")
def unfinished_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product when it answers: its project `demo` is still being made."""
    running = Product(tmp_path_factory.mktemp("product"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def product(unfinished_product: Product) -> Product:
    """The product with its complete project."""
    unfinished_product.wait_for_line("Winnow is ready")
    return unfinished_product
