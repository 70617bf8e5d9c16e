"""Every conformance test runs on each backend; a backend that is missing here is skipped."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from sandbox.choose import choose_backend
from sandbox.errors import SandboxUnavailable
from sandbox.protocol import Fixture, SandboxBackend, SandboxSession, SessionLimits, Setup
from tests.parts import missing

DEFAULT_LIMITS = SessionLimits()
Opener = Callable[..., SandboxSession]
# Each test whose case is not the first of so many is slow on Docker, where a session costs five times bubblewrap's:
# inside of it the same supervisor runs, and what differs is around it.
ON_DOCKER = 5
BACKENDS = [pytest.param("bubblewrap", marks=pytest.mark.bubblewrap), pytest.param("docker", marks=pytest.mark.docker)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        spec = getattr(item, "callspec", None)
        if spec is None or spec.params.get("backend") != "docker":
            continue
        test = item.nodeid.partition("[")[0]
        if seen[test] % ON_DOCKER:
            item.add_marker(pytest.mark.slow)
        seen[test] += 1


@pytest.fixture(params=BACKENDS, scope="module")
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SandboxBackend:
    return found(request.param, tmp_path_factory.mktemp("sandbox"))


def found(name: str, folder: Path) -> SandboxBackend:
    """Return the backend; without Docker's image the test is skipped. bubblewrap needs no build."""
    try:
        return choose_backend(name, folder=folder)
    except SandboxUnavailable as reason:
        if name == "docker":
            missing(str(reason))
        raise


@pytest.fixture
def opened(backend: SandboxBackend) -> Iterator[Opener]:
    """Open sessions that are closed when the test ends."""
    sessions: list[SandboxSession] = []

    def opening(
        fixtures: Sequence[Fixture] = (),
        env: Mapping[str, str] | None = None,
        *,
        motd: str = "",
        banner: str = "",
        limits: SessionLimits = DEFAULT_LIMITS,
    ) -> SandboxSession:
        setup = Setup(fixtures=fixtures, env=env or {}, motd=motd, banner=banner, limits=limits)
        sessions.append(backend.session(setup))
        return sessions[-1]

    yield opening
    for session in sessions:
        session.close()


@pytest.fixture
def session(opened: Opener) -> SandboxSession:
    return opened()
