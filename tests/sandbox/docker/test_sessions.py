"""Docker's containers: hardened as the engine reports them, labelled with their owner, and always removed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.docker.backend import PREFIX, DockerBackend, find
from sandbox.docker.engine import DockerSettings, Engine
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.protocol import MEBIBYTE, Fixture, SessionLimits, Setup
from tests.sandbox.docker.containers import containers_of, inspected

pytestmark = pytest.mark.docker
LABELS = {"run": "7", "item": "70", "lease": "worker-a"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sandbox"


@pytest.fixture
def own(backend: DockerBackend, folder: Path) -> DockerBackend:
    """The backend of this test alone; `backend` has checked that an engine runs."""
    return find(folder)


class TestHardening:
    def test_as_the_engine_sees_it(self, own: DockerBackend, engine: Engine, folder: Path) -> None:
        with own.session(Setup(labels=LABELS, limits=SessionLimits(memory=64 * MEBIBYTE, disk=32 * MEBIBYTE, pids=50))):
            (container,) = containers_of(engine, folder)
            seen = inspected(engine, container)
        host = seen["HostConfig"]
        assert (host["NetworkMode"], host["IpcMode"], host["Privileged"]) == ("none", "none", False)
        assert (host["CapDrop"], host["CapAdd"], host["ReadonlyRootfs"]) == (["ALL"], None, True)
        assert host["SecurityOpt"] == ["no-new-privileges"]
        assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (96 * MEBIBYTE, 96 * MEBIBYTE, 50)
        assert (host["NanoCpus"], host["LogConfig"]["Type"]) == (1_000_000_000, "none")
        assert (host["Binds"], seen["Mounts"], seen["Config"]["User"]) == (None, [], "1000:1000")
        assert {key: value for key, value in seen["Config"]["Labels"].items() if key[7:] in LABELS} == {
            f"{PREFIX}{key}": value for key, value in LABELS.items()
        }

    def test_as_the_agent_sees_it(self, own: DockerBackend) -> None:
        with own.session(Setup()) as session:
            status = session.exec("grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status").output.split()
            assert status == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
            assert session.exec("cat /proc/net/dev | tail -n +3 | cut -d: -f1").output.split() == ["lo"]
            assert session.exec("find / -xdev -perm /6000 -type f 2>/dev/null").output == ""
            assert "Read-only file system" in session.exec("echo x >/etc/motd.new; ln -s a /bin/b").output
            assert session.exec("ls /dev/shm /.dockerinit 2>/dev/null; cat /etc/resolv.conf").output == ""
            assert session.exec("env | cut -d= -f1 | sort").output.split() == [
                *("HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "USER")
            ]

    def test_manual_pages_can_be_read(self, own: DockerBackend) -> None:
        page = b".TH POST 1\n.SH NAME\npost \\- serves the tasks\n"
        with own.session(Setup(fixtures=[Fixture("/usr/local/share/man/man1/post.1", page)])) as session:
            assert "list directory contents" in session.exec("man ls").output
            assert "serves the tasks" in session.exec("man post").output


class TestNothingStays:
    def test_closed_twice_and_gone(self, own: DockerBackend, engine: Engine, folder: Path) -> None:
        session = own.session(Setup())
        assert len(containers_of(engine, folder)) == 1
        session.close()
        session.close()
        assert containers_of(engine, folder) == []
        with pytest.raises(SandboxFailed, match="over"):
            session.exec("true")

    def test_after_a_refused_setup(self, own: DockerBackend, engine: Engine, folder: Path) -> None:
        with pytest.raises(SetupRefused):
            own.session(Setup(fixtures=[Fixture("/etc/passwd", b"")]))
        full = Fixture("/srv/large", b"x" * 8 * MEBIBYTE)
        with pytest.raises(SetupRefused, match="No space left"):
            own.session(Setup(fixtures=[full]))
        assert containers_of(engine, folder) == []

    def test_where_the_start_fails_half_way(self, own: DockerBackend, engine: Engine, folder: Path) -> None:
        too_little = SessionLimits(memory=1, disk=64 * 1024)  # created, but the kernel starts nothing in it
        with pytest.raises(SandboxFailed):
            own.session(Setup(limits=too_little))
        assert containers_of(engine, folder) == []

    def test_where_the_image_or_the_runtime_is_missing(
        self, backend: DockerBackend, engine: Engine, folder: Path
    ) -> None:
        for settings in (DockerSettings(image="winnow-test-nothing:1"), DockerSettings(runtime="winnow-test-nothing")):
            with pytest.raises(SandboxFailed, match="winnow-test-nothing"):
                DockerBackend(folder, settings, engine).session(Setup())
        assert containers_of(engine, folder) == []

    def test_an_engine_that_is_gone_is_the_sandboxs_fault(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
        with pytest.raises(SandboxFailed, match="no engine answers at unix:///nowhere/docker.sock"):
            DockerBackend(folder, DockerSettings(), Engine()).session(Setup())

    def test_somebody_else_removes_it(self, own: DockerBackend, engine: Engine, folder: Path) -> None:
        session = own.session(Setup())
        (container,) = containers_of(engine, folder)
        with engine.client() as client:
            client.remove_container(container, force=True)
        began = time.monotonic()
        with pytest.raises(SandboxFailed, match="has ended"):
            session.exec("sleep 120", timeout=120)
        assert time.monotonic() - began < 60
        session.close()

    def test_no_file_stays_open(self, own: DockerBackend) -> None:
        own.session(Setup()).close()
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths
        for _ in range(4):
            with own.session(Setup()) as session:
                session.exec("true")
        assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


HOLDS_ONE = """
import sys, time
from pathlib import Path
from sandbox.docker.backend import find
from sandbox.protocol import Setup
session = find(Path(sys.argv[1])).session(Setup(labels={"run": "7", "item": "71", "lease": "worker-b"}))
print(session.exec("echo ready").output, flush=True)
time.sleep(120)
"""


class TestReaping:
    @pytest.fixture
    def leave(self, backend: DockerBackend, engine: Engine) -> Iterator[Callable[[dict[str, str]], None]]:
        """Create containers that were never started, as a killed worker leaves them."""
        made: list[str] = []

        def leaving(labels: dict[str, str]) -> None:
            with engine.client() as client:
                found = client.create_container(DockerSettings.from_environment().image, ["true"], labels=labels)
                made.append(str(found["Id"]))

        yield leaving
        with engine.client() as client:
            for container in {row["Id"] for row in client.containers(all=True)} & set(made):
                client.remove_container(container, force=True)

    def test_a_killed_workers_container_goes_by_itself(self, own: DockerBackend, engine: Engine, folder: Path) -> None:
        worker = subprocess.Popen([sys.executable, "-c", HOLDS_ONE, str(folder)], stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        assert len(containers_of(engine, folder)) == 1
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        # The engine removes it because its stdin ended; a container that never started is left to the reaper.
        until = time.monotonic() + 20
        while containers_of(engine, folder) and time.monotonic() < until:
            time.sleep(0.1)
        assert containers_of(engine, folder) == []
        assert own.reap(lambda labels: False) == 0

    def test_the_dead_go_and_the_living_stay(
        self, own: DockerBackend, engine: Engine, folder: Path, tmp_path: Path, leave: Callable[[dict[str, str]], None]
    ) -> None:
        with own.session(Setup(labels=LABELS)) as alive:
            (living,) = containers_of(engine, folder)
            ours = inspected(engine, living)["Config"]["Labels"]
            leave({**ours, "winnow.lease": "worker-dead"})
            neighbour = tmp_path / "another"
            with find(neighbour).session(Setup(labels={**LABELS, "lease": "worker-dead"})) as theirs:
                assert own.reap(lambda labels: labels["lease"] == "worker-a") == 1
                assert containers_of(engine, folder) == [living]
                assert theirs.exec("echo here").output == "here\n"
            assert alive.exec("echo here").output == "here\n"
        assert own.reap(lambda labels: False) == 0

    def test_a_session_without_an_owner_is_kept_for_an_hour(
        self, own: DockerBackend, engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with own.session(Setup()):
            assert own.reap(lambda labels: False) == 0
            now = time.time()
            monkeypatch.setattr(time, "time", lambda: now + 3601)
            assert own.reap(lambda labels: False) == 1
            assert containers_of(engine, folder) == []
