"""Docker's side of `benchmarks.sandbox`: whole episodes beside the bare engine, one command beside `docker exec`."""

import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

from sandbox.docker.backend import DockerBackend, find
from sandbox.docker.container import remove_container, start_container
from sandbox.docker.engine import DockerSettings, Engine
from sandbox.protocol import SessionLimits, Setup


class BareEngine:
    """The same hardened container without us: made, started, one exec, removed."""

    def __init__(self) -> None:
        self._engine = Engine()
        self._settings = DockerSettings.from_environment()

    def episode(self) -> None:
        sleeps = ["sleep", "60"]
        started = start_container(self._engine, self._settings, command=sleeps, limits=SessionLimits(), labels={})
        try:
            with self._engine.client() as client:
                client.exec_start(client.exec_create(started.id, ["true"])["Id"])
        finally:
            remove_container(self._engine, started.id)
            started.hang_up()


def docker_side(folder: Path) -> tuple[DockerBackend, Callable[[], None]]:
    """The backend and the bare episode; raises `SandboxUnavailable`."""
    return find(folder), BareEngine().episode


def with_live_session(backend: DockerBackend, measure: Callable[[Callable[[], object]], float]) -> tuple[float, float]:
    """What `measure` says of one command in a live session, and of the same command by `docker exec` in it."""
    trial = uuid.uuid4().hex
    with backend.session(Setup(labels={"trial": trial})) as session:
        session.exec("true")
        listed = subprocess.run(
            ["docker", "ps", "--quiet", "--no-trunc", "--filter", f"label=winnow.trial={trial}"],
            capture_output=True,
            text=True,
            check=True,
        )
        command = ["docker", "exec", listed.stdout.strip(), "/bin/sh", "-c", "true"]
        return measure(lambda: session.exec("true")), measure(lambda: subprocess.run(command, check=True))
