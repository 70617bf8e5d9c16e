"""The container image does what the product does: migrations, web, separate workers on PostgreSQL and Redis."""

import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from pydantic import BaseModel

from tests.deploy.containers import Installation, build_image, docker, eventually, free_port, installation
from tests.parts import missing

pytestmark = [
    pytest.mark.long,
    pytest.mark.docker,
    pytest.mark.redis,
    pytest.mark.timeout(900),
]

TAG = "winnow-test:latest"
PASSWORD = "a-password-of-this-test"
WORKER = ("celery", "--app", "config", "worker", "--concurrency", "1", "--loglevel", "INFO", "--queues")


class _Items(BaseModel):
    total: int
    done: int
    failed: int


class _Run(BaseModel):
    """What this test reads of a run."""

    id: str
    kind: str
    state: str
    items: _Items
    error: str | None
    result: dict[str, object] | None


@contextmanager
def _own_database() -> Iterator[str]:
    """URL of a new, empty database on the server of TEST_DATABASE_URL."""
    server = os.environ.get("TEST_DATABASE_URL", "")
    if urlsplit(server).scheme not in {"postgres", "postgresql"}:
        missing("TEST_DATABASE_URL names no PostgreSQL")
    name = f"image_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"drop database {name} with (force)".encode())


@pytest.fixture(scope="module")
def image() -> str:
    return build_image(TAG)


@pytest.fixture(scope="module")
def product(image: str) -> Iterator[tuple[Installation, httpx.Client]]:
    """Migrated, with web, a worker for the default queue and beat; the LLM worker is started by the test."""
    port = free_port()
    with _own_database() as database:
        settings = {
            "DATABASE_URL": database,
            "CELERY_BROKER_URL": urlsplit(os.environ["TEST_BROKER_URL"])._replace(path="/13").geturl(),
            # The host's network is the container's: only loopback, which is what compose publishes.
            "BIND": "127.0.0.1",
            "PORT": str(port),
            "ALLOWED_HOSTS": "localhost,127.0.0.1",
            "SANDBOX": "none",
            "WEB_PROCESSES": "1",
        }
        with installation(image, f"winnow-test-{secrets.token_hex(3)}", settings) as made:
            made.run("python", "manage.py", "migrate", "--no-input")
            made.start("web", "gunicorn", "config.wsgi")
            made.start("worker-default", *WORKER, "default", "--hostname", "default@%h")
            made.start("beat", "celery", "--app", "config", "beat", "--pidfile", "")
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
                eventually("web is healthy", lambda: _healthy(client), log=lambda: made.logs("web"))
                made.inside(
                    "web",
                    *("env", f"DJANGO_SUPERUSER_PASSWORD={PASSWORD}", "python", "manage.py", "createsuperuser"),
                    *("--no-input", "--username", "owner", "--email", "owner@example.org"),
                )
                yield made, client


def _healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/api/v1/health").status_code == 200
    except httpx.TransportError:
        return False


def test_the_image_holds_no_secret_and_no_installer(image: str) -> None:
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", image)
    environment = docker("inspect", "--format", "{{json .Config.Env}}", image)

    assert "SECRET_KEY" not in environment
    assert "PIP_" not in environment
    assert "PIP_INDEX_URL=" not in history
    listing = docker(
        *("run", "--rm", "--entrypoint", "sh", image, "-c"),
        "ls -A /app /data; find / -xdev -name secret_key 2>/dev/null; ls /opt/venv/bin; id -u",
    ).splitlines()
    assert not {"pip", "pip3", ".git", ".env", "tests", "secret_key"} & set(listing)
    assert listing[-1] == "10001"


def test_static_files_are_in_the_image(product: tuple[Installation, httpx.Client]) -> None:
    made, client = product

    assert "plotly" in made.inside("web", "ls", "/app/staticfiles")
    answer = client.get("/static/plotly/plotly.min.js")
    assert answer.status_code == 200
    assert len(answer.content) > 1_000_000


def test_health_ready_and_the_containers_own_check(product: tuple[Installation, httpx.Client]) -> None:
    made, client = product

    assert client.get("/api/v1/health").status_code == 200
    ready = client.get("/api/v1/ready")
    assert ready.status_code == 200, ready.text
    made.inside("web", "/app/deploy/web-answers")


def test_a_person_signs_in(product: tuple[Installation, httpx.Client]) -> None:
    _, client = product
    form = client.get("/login/")
    assert form.status_code == 200
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
    assert token is not None

    def sign_in(password: str) -> httpx.Response:
        return client.post(
            "/login/",
            data={"username": "owner", "password": password, "csrfmiddlewaretoken": token[1]},
            headers={"Referer": str(client.base_url)},
        )

    assert sign_in("wrong").status_code == 200, "a wrong password shows the form again"
    assert sign_in(PASSWORD).status_code == 302
    assert client.get("/", follow_redirects=True).status_code == 200
    client.cookies.clear()


def test_a_duel_run_goes_through_the_workers(product: tuple[Installation, httpx.Client]) -> None:
    made, client = product
    bearer = made.inside(
        "web",
        *("python", "manage.py", "token", "create", "--user", "owner"),
        *("--scopes", "read,review,run,export,admin"),
    ).splitlines()[-1]
    api = _Caller(client, bearer)
    api.create("/projects", {"slug": "ship", "name": "Ship"})
    for name in ("king", "challenger", "judge-careful"):
        api.create("/projects/ship/models", {"name": name, "model": f"scripted/{name}"})

    # Imports are the default worker's; it is there.
    for kind, row in (("turns", _turns), ("pr_records", _record)):
        imported = api.finished(api.upload("/projects/ship/imports", kind=kind, rows=[row(n) for n in range(6)]))
        assert (imported.state, imported.items.failed) == ("succeeded", 0), (imported, made.logs("worker-default"))
    prompts = len(api.rows("/projects/ship/prompts"))
    assert prompts == 12

    # Model calls are the LLM worker's, which comes late: what was rung for before is not lost.
    params = {"king_model": "king", "challenger_model": "challenger", "judges": ["judge-careful"], "min_judges": 1}
    launched = api.launch("/projects/ship/runs", {"kind": "duel", "params": params})
    made.start("worker-llm", *WORKER, "llm", "--hostname", "llm@%h")
    run = api.finished(launched)

    assert run.state == "succeeded", (run, made.logs("worker-llm"))
    assert run.result is not None
    assert run.result["done"] == prompts
    duels = api.rows("/projects/ship/duels")
    assert len(duels) == prompts
    assert all(duel["score"] is not None for duel in duels)
    assert len(api.rows("/projects/ship/samples")) == prompts


def test_services_end_when_asked(product: tuple[Installation, httpx.Client]) -> None:
    made, _ = product

    assert made.stop("worker-default") == 0, made.logs("worker-default")
    assert made.stop("web") == 0, made.logs("web")


def _instance(number: int) -> str:
    return f"example__parser-{number}"


def _turns(number: int) -> dict[str, object]:
    """A conversation with two assistant turns, each with a history."""
    listing = f"src/module_{number}.py\nsrc/parser.py\ntests/test_parser.py"
    return {
        "instance_id": _instance(number),
        "messages": [
            {"role": "system", "content": "You fix bugs with one shell command per answer."},
            {"role": "user", "content": f"The parser drops the last line of file {number}. Find out why."},
            {"role": "assistant", "content": "THOUGHT: First the files.\n\n```bash\nls src tests\n```"},
            {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{listing}\n</output>"},
            {"role": "assistant", "content": "THOUGHT: Read the parser.\n\n```bash\ncat src/parser.py\n```"},
        ],
    }


def _record(number: int) -> dict[str, object]:
    """The merged pull request that the challenger is shown."""
    return {
        "instance_id": _instance(number),
        "repo": "example/parser",
        "title": "Keep the last line",
        "issue": f"The parser drops the last line of file {number}.",
        "files": ["src/parser.py"],
        "description": "The loop ended one line early.",
        "patch": "--- a/src/parser.py\n+++ b/src/parser.py\n@@ -1 +1 @@\n-lines[:-1]\n+lines\n",
    }


class _Caller:
    """The REST API as a script sees it."""

    def __init__(self, client: httpx.Client, bearer: str) -> None:
        self.client = client
        self.headers = {"Authorization": f"Bearer {bearer}"}

    def _answered(self, method: str, path: str, body: object = None) -> httpx.Response:
        answer = self.client.request(method, f"/api/v1{path}", json=body, headers=self.headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer

    def create(self, path: str, body: object) -> None:
        self._answered("POST", path, body)

    def rows(self, path: str) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = self._answered("GET", f"{path}?limit=500").json()["data"]
        return rows

    def launch(self, path: str, body: object) -> _Run:
        return _Run.model_validate_json(self._answered("POST", path, body).content)

    def upload(self, path: str, *, kind: str, rows: list[dict[str, object]]) -> _Run:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        answer = self.client.post(
            f"/api/v1{path}",
            data={"kind": kind, "options": "{}"},
            files={"file": ("rows.jsonl", text.encode(), "application/x-ndjson")},
            headers=self.headers,
        )
        assert answer.status_code == 202, answer.text[:500]
        return _Run.model_validate_json(answer.content)

    def finished(self, run: _Run) -> _Run:
        latest = run

        def over() -> bool:
            nonlocal latest
            latest = _Run.model_validate_json(self._answered("GET", f"/runs/{run.id}").content)
            return latest.state in {"succeeded", "failed", "cancelled"}

        eventually(f"run {run.kind} ends", over, seconds=120)
        return latest
