"""Which backend `SANDBOX` chooses."""

from pathlib import Path

import pytest

from sandbox import choose
from sandbox.choose import choose_backend
from sandbox.errors import SandboxUnavailable
from sandbox.gate.state import state_digest
from sandbox.protocol import Fixture, SandboxBackend
from tests.sandbox.conftest import Opener
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


TODO = Fixture("/usr/local/bin/todo", b"#!/bin/sh\necho asked\n", 0o755)


def test_a_look_around_changes_nothing_and_work_does(opened: Opener) -> None:
    session = opened([TODO])
    states = [state_digest(session).sha256]
    for command in (
        "ls -la; cat /usr/local/bin/todo; todo",
        "cd /tmp",
        "export A=1",
        "echo 1 > /srv/x",
        "chmod 600 /srv/x",
    ):
        session.exec(command)
        states.append(state_digest(session).sha256)
    assert states[0] == states[1]
    assert len(set(states[1:])) == 5
    session.exec("rm /srv/x; unset A; cd")
    assert state_digest(session).sha256 == states[0]


def test_two_sandboxes_in_the_same_state_have_the_same_digest(opened: Opener) -> None:
    one, other = opened([TODO]), opened([TODO])
    one.exec("echo b > /srv/b; echo a > /srv/a")
    other.exec("echo a > /srv/a")
    other.exec("todo; echo b > /srv/b")
    assert state_digest(one).sha256 == state_digest(other).sha256
    other.exec("sleep 60 &")
    assert state_digest(one).sha256 != state_digest(other).sha256


def test_the_digest_tells_which_programs_ran_before_it(opened: Opener) -> None:
    session = opened([TODO])
    before = state_digest(session)
    session.exec("todo now")
    after = state_digest(session)
    runs = session.check("exit 0", terminal="exit").runs
    if runs is not None:
        assert [(run.arguments, before.pid < run.pid < after.pid) for run in runs] == [(("now",), True)]


def test_what_an_agent_defines_does_not_disturb_the_digest(opened: Opener) -> None:
    session = opened()
    session.exec("export PATH=/nowhere; set -e; printf() { echo no; }; exec 2>&1")
    first = state_digest(session)
    session.exec("/bin/true")
    assert state_digest(session).sha256 == first.sha256
