from pathlib import Path

import pytest

from sandbox.docker.backend import DockerBackend, find
from sandbox.docker.engine import Engine
from sandbox.errors import SandboxUnavailable
from tests.parts import missing


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> DockerBackend:
    """A separate installation on the engine: its folder is new, so its containers are its own."""
    return found(tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


def found(folder: Path) -> DockerBackend:
    try:
        return find(folder)
    except SandboxUnavailable as reason:
        missing(str(reason))
