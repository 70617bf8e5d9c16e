"""The container image works like the product: migrations, web, separate workers on PostgreSQL and Redis."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from tests.deploy.containers import Installation, build_image, docker, eventually, installation
from tests.deploy.rest import Caller, is_healthy, new_token, run_a_duel, sign_in
from tests.parts import missing
from tests.serving import free_port

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.redis, pytest.mark.timeout(900)]

PASSWORD = "a-password-of-this-test"
WORKER = ("celery", "--app", "config", "worker", "--concurrency", "1", "--loglevel", "INFO", "--queues")


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
    return build_image()


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
                eventually("web is healthy", lambda: is_healthy(client), log=lambda: made.logs("web"))
                made.inside(
                    "web",
                    *("env", f"DJANGO_SUPERUSER_PASSWORD={PASSWORD}", "python", "manage.py", "createsuperuser"),
                    *("--no-input", "--username", "owner", "--email", "owner@example.org"),
                )
                yield made, client


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
    answer = client.get(re.findall(r'"(/static/css/[^"]+)"', client.get("/login/").text)[0])
    assert (answer.status_code, answer.headers["Content-Encoding"]) == (200, "gzip")


def test_health_ready_and_the_containers_own_check(product: tuple[Installation, httpx.Client]) -> None:
    made, client = product

    assert client.get("/api/v1/health").status_code == 200
    ready = client.get("/api/v1/ready")
    assert ready.status_code == 200, ready.text
    made.inside("web", "/app/deploy/web-answers")


def test_a_person_signs_in(product: tuple[Installation, httpx.Client]) -> None:
    _, client = product
    assert not sign_in(client, "owner", "wrong")
    assert sign_in(client, "owner", PASSWORD)


def test_a_duel_run_goes_through_the_workers(product: tuple[Installation, httpx.Client]) -> None:
    made, client = product
    bearer = made.inside("web", *new_token("owner")).splitlines()[-1]

    # Imports are the default worker's; it is there. Model calls are the LLM worker's, which comes late: messages
    # dispatched before are not lost.
    run_a_duel(
        Caller(client, bearer),
        before_the_run=lambda: made.start("worker-llm", *WORKER, "llm", "--hostname", "llm@%h"),
        log=lambda: made.logs("worker-default") + made.logs("worker-llm"),
    )


def test_services_end_when_asked(product: tuple[Installation, httpx.Client]) -> None:
    made, _ = product

    assert made.stop("worker-default") == 0, made.logs("worker-default")
    assert made.stop("web") == 0, made.logs("web")
