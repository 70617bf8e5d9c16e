"""`docker compose up --build` with compose.yaml as it is: stand-ins for the base images, nothing else prepared."""

import json
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from tests.deploy.containers import BASE, CA_BUNDLE, ROOT, TAG, build_image, build_servers, eventually
from tests.deploy.rest import Caller, is_healthy, new_token, run_a_duel, sign_in
from tests.parts import missing
from tests.serving import free_port

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(900)]

PASSWORD = "a-password-of-this-test"


@dataclass
class Stack:
    """The running product of compose.yaml. `folder` is where the shell commands of the documentation run."""

    environment: dict[str, str]
    folder: Path
    client: httpx.Client

    def shell(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}\n{self.logs()}"
        return done.stdout.strip()

    def inside(self, service: str, command: str) -> str:
        return self.shell(f"docker compose exec -T {service} {command}")

    def logs(self) -> str:
        words = ["docker", "compose", "logs", "--tail", "25"]
        return subprocess.run(
            words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        ).stdout

    def health(self) -> dict[str, str]:
        """State of health by service; empty for those without a check."""
        rows = [json.loads(line) for line in self.shell("docker compose ps --format json").splitlines()]
        return {row["Service"]: row["Health"] for row in rows}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        missing("docker has no plugin compose")
    build_image()  # and with it the layers that compose needs
    servers, folder, port = build_servers(), tmp_path_factory.mktemp("compose"), free_port()
    # The tests' engine has no bridge of its own: a build step reaches the package index by the host's network.
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    built = {name: {"build": {"network": "host"}} for name, service in services.items() if "build" in service}
    (folder / "network.yaml").write_text(yaml.safe_dump({"services": built}))
    stand_ins = {
        **{"BASE": BASE, "POSTGRES_IMAGE": servers, "REDIS_IMAGE": servers, "WINNOW_IMAGE": TAG},
        **{"PIP_CERT": CA_BUNDLE, "DOCKER_BUILDKIT": "0", "PORT": str(port)},
        "COMPOSE_PROJECT_NAME": f"winnow-test-{secrets.token_hex(3)}",
        "COMPOSE_FILE": f"{ROOT / 'compose.yaml'}:{folder / 'network.yaml'}",
    }
    settings = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    inherited = {name: value for name, value in os.environ.items() if name not in settings}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        made = Stack(inherited | stand_ins, folder, client)
        try:
            made.shell("docker compose up --build --detach")
            eventually("web is healthy", lambda: is_healthy(client), log=made.logs)
            yield made
        finally:
            made.shell("docker compose down --volumes --timeout 5")


def test_the_first_user_is_made_by_exec_and_signs_in(stack: Stack) -> None:
    stack.shell(
        f"docker compose exec -T -e DJANGO_SUPERUSER_PASSWORD={PASSWORD} web python manage.py createsuperuser"
        " --no-input --username owner --email owner@example.org"
    )

    assert sign_in(stack.client, "owner", PASSWORD)


def test_all_services_use_the_key_that_the_first_one_made(stack: Stack) -> None:
    stack.inside("web", "python manage.py check --deploy")
    shown = 'python -c "from config.settings import SECRET_KEY; print(SECRET_KEY)"'
    keys = {
        stack.inside(service, shown)
        for service in ("web", "worker-llm", "worker-rollout", "worker-default", "worker-sandbox", "beat")
    }

    assert len(keys) == 1
    assert stack.inside("web", "stat -c %a /data/secret_key") == "600"


def test_a_duel_run_goes_through_the_workers(stack: Stack) -> None:
    api = Caller(stack.client, stack.inside("web", " ".join(new_token("owner"))).splitlines()[-1])

    run_a_duel(api, log=stack.logs)


def test_runs_that_need_a_sandbox_are_refused_with_the_reason(stack: Stack) -> None:
    api = Caller(stack.client, stack.inside("web", " ".join(new_token("owner"))).splitlines()[-1])
    api.create("/projects/ship/models", {"name": "operator", "model": "scripted/operator-solver"})
    scenario = json.loads((ROOT / "curation/scenarios/shipped/choir-roster.json").read_text())
    assert api.finished(api.upload("/projects/ship/imports", kind="scenarios", rows=[scenario])).items.failed == 0

    gate = api.try_launch("/projects/ship/runs", {"kind": "gate", "params": {}})
    rollout = api.try_launch("/projects/ship/runs", {"kind": "rollout", "params": {"model": "operator"}})

    assert gate.status_code == 409, gate.text
    assert "SANDBOX=none" in gate.json()["detail"]
    assert rollout.status_code == 422, rollout.text
    assert "only scenarios that passed the gate" in rollout.json()["detail"]


def test_health_checks_of_web_and_workers_pass(stack: Stack) -> None:
    checked = {"postgres", "redis", "web", "worker-llm", "worker-rollout", "worker-default", "worker-sandbox"}

    eventually(
        "every check passes",
        lambda: all(stack.health()[service] == "healthy" for service in checked),
        log=lambda: f"{stack.health()}\n{stack.logs()}",
        seconds=150,
    )
    assert stack.health()["beat"] == ""


def test_the_documented_commands_back_up_and_restore(stack: Stack) -> None:
    backup, restore = _documented("**Compose.** While it runs:"), _documented("To restore, here or on another machine:")
    assert len(backup) == 2
    assert len(restore) == 5
    api = Caller(stack.client, stack.inside("web", " ".join(new_token("owner"))).splitlines()[-1])
    samples, files = api.rows("/projects/ship/samples"), stack.inside("web", "find /data/files -type f")
    assert samples
    assert files

    for command in backup:
        stack.shell(command)
    api.create("/projects", {"slug": "later", "name": "Made after the backup"})
    stack.inside("web", "rm -r /data/files /data/secret_key")
    for command in restore:
        stack.shell(command)
    eventually("web is healthy", lambda: is_healthy(stack.client), log=stack.logs)

    assert api.rows("/projects/ship/samples") == samples
    assert stack.inside("web", "find /data/files -type f") == files
    assert [project["slug"] for project in api.rows("/projects")] == ["ship"]
    assert sign_in(stack.client, "owner", PASSWORD)


def _documented(before: str) -> list[str]:
    """The lines of the first code block in docs/operations.md that follows these words."""
    after = (ROOT / "docs/operations.md").read_text().partition(before)[2]
    block = re.search(r"\n\n((?:    .+\n)+)", after)
    assert block is not None
    return [line.strip() for line in block[1].splitlines()]
