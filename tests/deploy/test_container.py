"""The image without a command: the whole product in one container."""

import json
import re
import secrets
from collections.abc import Iterator

import httpx
import pytest

from tests.deploy.containers import Installation, build_image, docker, eventually, installation
from tests.deploy.rest import Caller, is_healthy, new_token, run_a_duel, sign_in
from tests.serving import free_port

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(900)]

SIGN_IN = re.compile(r"Sign in as admin with the password (\S+) and change it")


@pytest.fixture(scope="module")
def container() -> Iterator[tuple[Installation, httpx.Client]]:
    port = free_port()
    # The tests' engine has no bridge to publish a port from; the container uses the host's network.
    settings = {"PORT": str(port), "WEB_PROCESSES": "1", "ALLOWED_HOSTS": "winnow.example.org,127.0.0.1"}
    settings["LOG_FORMAT"] = "json"
    with installation(build_image(), f"winnow-one-{secrets.token_hex(3)}", settings) as made:
        made.start("all")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            eventually("it is healthy", lambda: is_healthy(client), log=lambda: made.logs("all"))
            yield made, client


def test_the_administrators_password_is_in_the_log_once(container: tuple[Installation, httpx.Client]) -> None:
    made, client = container
    found = SIGN_IN.findall(made.logs("all"))

    assert len(found) == 1
    assert sign_in(client, "admin", found[0])
    assert "refused" in made.inside("all", "sh", "-c", f"grep -rqF {found[0]} /data && echo stored || echo refused")


def test_a_duel_run_goes_through_its_worker(container: tuple[Installation, httpx.Client]) -> None:
    made, client = container
    bearer = made.inside("all", *new_token("admin")).splitlines()[-1]

    run_a_duel(Caller(client, bearer), log=lambda: made.logs("all"))


def test_every_line_of_its_log_is_json_with_ids(container: tuple[Installation, httpx.Client]) -> None:
    made, _ = container

    lines = [json.loads(line) for line in made.logs("all").splitlines()]

    ids = {"request_id", "task_id", "run_id", "item_id"}
    assert all({"timestamp", "level", "logger", "message"} | ids <= set(line) for line in lines)
    worked = [line for line in lines if re.match(r"Task curation.runs.tasks.work\S+ succeeded", line["message"])]
    assert worked
    assert all(line["task_id"] and line["run_id"] for line in worked)
    posted = {
        line["request_id"] for line in lines if line["logger"] == "gunicorn.access" and " POST " in line["message"]
    }
    assert posted & {line["request_id"] for line in worked}, "the worker names the request that launched the run"


def test_its_health_check_passes(container: tuple[Installation, httpx.Client]) -> None:
    made, _ = container

    def passes() -> bool:
        return docker("inspect", "--format", "{{.State.Health.Status}}", f"{made.name}-all") == "healthy"

    eventually("the health check passes", passes, log=lambda: made.logs("all"), seconds=60)


def test_it_stops_when_asked_and_starts_again_with_its_data(container: tuple[Installation, httpx.Client]) -> None:
    made, client = container

    assert made.stop("all") == 0, made.logs("all")
    docker("start", f"{made.name}-all")
    eventually("it is healthy", lambda: is_healthy(client), log=lambda: made.logs("all"))

    assert len(SIGN_IN.findall(made.logs("all"))) == 1, "the first user is made once"
    bearer = made.inside("all", *new_token("admin")).splitlines()[-1]
    assert [row["slug"] for row in Caller(client, bearer).rows("/projects")] == ["ship"]
