"""Which backend `SANDBOX` chooses."""

from pathlib import Path

import pytest

from sandbox import choose
from sandbox.choose import choose_backend
from sandbox.errors import SandboxUnavailable
from sandbox.protocol import SandboxBackend
from tests.sandbox.fake import FakeBackend


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeBackend]:
    """The backends of this machine; `opened` counts how often each was looked for."""
    backends: dict[str, FakeBackend] = {}

    def working(name: str, folder: Path) -> SandboxBackend:
        if name not in backends:
            raise SandboxUnavailable(f"no {name} here")
        backends[name].opened += 1
        return backends[name]

    monkeypatch.setattr(choose, "_working", working)
    return backends


def test_auto_prefers_docker_to_bubblewrap(there: dict[str, FakeBackend], tmp_path: Path) -> None:
    there["bubblewrap"] = FakeBackend(name="bubblewrap")
    assert choose_backend("auto", folder=tmp_path / "a").name == "bubblewrap"
    there["docker"] = FakeBackend(name="docker")
    assert choose_backend("auto", folder=tmp_path / "b").name == "docker"


def test_a_chosen_backend_is_never_replaced(there: dict[str, FakeBackend], tmp_path: Path) -> None:
    there["bubblewrap"] = FakeBackend(name="bubblewrap")
    with pytest.raises(SandboxUnavailable, match="no docker here"):
        choose_backend("docker", folder=tmp_path)


def test_a_working_backend_is_kept_and_a_missing_one_looked_for_again(
    there: dict[str, FakeBackend], tmp_path: Path
) -> None:
    with pytest.raises(SandboxUnavailable) as missing:
        choose_backend("auto", folder=tmp_path)
    assert "no docker here" in str(missing.value) and "no bubblewrap here" in str(missing.value)
    assert "apt install bubblewrap" in str(missing.value)
    there["bubblewrap"] = FakeBackend(name="bubblewrap")
    first = choose_backend("auto", folder=tmp_path)
    assert choose_backend("auto", folder=tmp_path) is first and there["bubblewrap"].opened == 1


def test_none_and_unknown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="switched off"):
        choose_backend("none", folder=tmp_path)
    with pytest.raises(SandboxUnavailable, match="SANDBOX=podman"):
        choose_backend("podman", folder=tmp_path)
