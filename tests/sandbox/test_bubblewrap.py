"""The bubblewrap backend: it leaves nothing behind, survives dead workers, and copes with lesser machines."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.bubblewrap.backend import BubblewrapBackend, bubblewrap_backend, find
from sandbox.bubblewrap.cgroups import find_cgroups
from sandbox.bubblewrap.command import HOST_UID, find_host
from sandbox.errors import SandboxFailed, SandboxUnavailable
from sandbox.protocol import SessionLimits, Setup

pytestmark = pytest.mark.bubblewrap


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sandbox"


@pytest.fixture
def backend(folder: Path) -> BubblewrapBackend:
    return find(folder)


def groups(maker: int = os.getpid()) -> set[str]:
    """The control groups of the sessions that a process made."""
    cgroups = find_cgroups()
    return {name for name in cgroups.names() if name.startswith(f"{maker}-")} if cgroups else set()


def children(*parents: int) -> set[int]:
    """The running children of these processes."""
    listed = [path.read_text() for parent in parents for path in Path(f"/proc/{parent}/task").glob("*/children")]
    return {int(pid) for pid in " ".join(listed).split()}


def templates(maker: int) -> set[int]:
    """The templates of a process: each is the child of a bubblewrap."""
    return children(*children(maker))


def supervisors(maker: int) -> set[int]:
    """The first processes of a process's sessions."""
    return children(*templates(maker))


def eventually(holds: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class TestLeavingNothingBehind:
    @pytest.mark.parametrize("sessions", [60, pytest.param(300, marks=pytest.mark.slow)])
    def test_many_sessions(self, backend: BubblewrapBackend, folder: Path, sessions: int) -> None:
        def episode(number: int) -> None:
            with backend.session(Setup()) as session:
                session.exec("sleep 300 & echo x > /srv/x")
                if number % 2:
                    session.check("true", terminal="exit")

        def state() -> tuple[int, int, set[str], int]:
            # Other programs mount things meanwhile; a sandbox's mounts name its user or bubblewrap's own folders.
            mounted = Path("/proc/self/mountinfo").read_text().splitlines()
            ours = [line for line in mounted if f"uid={HOST_UID}" in line or "newroot" in line or "oldroot" in line]
            return len(supervisors(os.getpid())), len(ours), groups(), len(list(Path("/proc/self/fd").iterdir()))

        assert eventually(lambda: not supervisors(os.getpid()))  # of the trial session
        before = state()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(episode, range(sessions)))
        assert eventually(lambda: state()[0] <= before[0])
        *left, open_files = state()
        assert left == list(before[:-1])
        assert open_files <= before[-1]  # files closed by the garbage collector meanwhile were another test's
        assert list((folder / "bubblewrap").iterdir()) == []

    def test_an_opening_that_fails_leaves_nothing(self, folder: Path) -> None:
        host = find_host(folder)
        broken = dataclasses.replace(host, programs=dataclasses.replace(host.programs, bwrap="/usr/bin/false"))
        before = groups()
        with pytest.raises(SandboxFailed, match="ended by itself|connection to the sandbox broke|cannot be reached"):
            BubblewrapBackend(folder, broken).session(Setup())
        absent = dataclasses.replace(host, programs=dataclasses.replace(host.programs, bwrap="/nowhere", chroot=None))
        with pytest.raises(SandboxFailed):
            BubblewrapBackend(folder, absent).session(Setup())
        assert groups() == before and list((folder / "bubblewrap").iterdir()) == []


class TestDeath:
    def test_of_the_template_is_infra(self, folder: Path) -> None:
        others = templates(os.getpid())
        backend = find(folder)
        with backend.session(Setup()) as session:
            session.exec("sleep 300 &")
            (template,) = templates(os.getpid()) - others
            os.kill(template, signal.SIGKILL)
            with pytest.raises(SandboxFailed):
                session.exec("sleep 10", timeout=15)
        with backend.session(Setup()) as session:
            assert session.exec("echo again").output == "again\n"
        assert groups() == set()

    def test_of_a_thread_leaves_its_session(self, backend: BubblewrapBackend) -> None:
        with ThreadPoolExecutor(1) as pool:
            session = pool.submit(backend.session, Setup()).result()
        assert session.exec("echo on").output == "on\n"
        session.close()

    def test_of_the_conversation_is_infra(self, backend: BubblewrapBackend, monkeypatch: pytest.MonkeyPatch) -> None:
        """A supervisor that was stopped from the host does not respond; the wait for it has an end."""
        monkeypatch.setattr("sandbox.session.GRACE_SECONDS", 0.5)
        before = supervisors(os.getpid())
        with backend.session(Setup()) as session:
            (supervisor,) = supervisors(os.getpid()) - before
            os.kill(supervisor, signal.SIGSTOP)
            with pytest.raises(SandboxFailed, match="does not respond"):
                session.exec("true", timeout=0.2)
        assert eventually(lambda: not Path(f"/proc/{supervisor}").exists()) and groups() == set()

    @pytest.mark.parametrize("busy", [False, True])
    def test_of_a_worker_ends_its_sandbox_and_the_reaper_clears_up(
        self, backend: BubblewrapBackend, folder: Path, busy: bool
    ) -> None:
        script = f"""
import sys
from pathlib import Path
from sandbox.bubblewrap.backend import find
from sandbox.protocol import Setup
session = find(Path({str(folder)!r})).session(Setup(labels={{"item": "7", "lease": "gone"}}))
session.exec("sleep 301 &")
print("open", flush=True)
session.exec("sleep 302", timeout=100) if {busy} else sys.stdin.read()
"""
        worker = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert worker.stdout is not None and worker.stdout.readline() == b"open\n"
        inside = templates(worker.pid) | supervisors(worker.pid)
        assert len(inside) == 2
        worker.kill()
        worker.wait()
        assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in inside))
        assert len(list((folder / "bubblewrap").glob("*.json"))) == 1
        assert backend.reap(lambda labels: True) == 1
        assert list((folder / "bubblewrap").iterdir()) == []
        assert groups(worker.pid) == set()
        assert backend.reap(lambda labels: True) == 0

    def test_of_a_worker_that_was_writing_its_record_leaves_none(
        self, backend: BubblewrapBackend, folder: Path
    ) -> None:
        named = subprocess.run(
            [sys.executable, "-c", "from sandbox.bubblewrap.records import new_name; print(new_name(), new_name())"],
            capture_output=True,
            text=True,
            check=True,
        )
        empty, half = (folder / "bubblewrap" / f"{name}.json" for name in named.stdout.split())
        empty.write_text("")
        half.write_text('{"process": {"pid": 4')
        assert backend.reap(lambda labels: True) == 2
        assert list((folder / "bubblewrap").iterdir()) == []

    def test_of_a_lease_is_the_reapers_too(self, backend: BubblewrapBackend) -> None:
        asked = []

        def is_alive(labels: object) -> bool:
            asked.append(labels)
            return labels == {"item": "1"}

        kept = backend.session(Setup(labels={"item": "1"}))
        lost = backend.session(Setup(labels={"item": "2"}))
        nobodys = backend.session(Setup())
        assert backend.reap(is_alive) == 1
        assert asked in ([{"item": "1"}, {"item": "2"}], [{"item": "2"}, {"item": "1"}])
        with pytest.raises(SandboxFailed):
            lost.exec("true")
        for session in (kept, nobodys):
            assert session.exec("echo on").output == "on\n"
        for session in (kept, lost, nobodys):
            session.close()
        assert groups() == set()


class TestWhoAndWhat:
    def test_the_agent_is_nobody_on_the_host(self, backend: BubblewrapBackend) -> None:
        if os.geteuid() != 0:
            pytest.skip("the server is not root here: its agents are the user that it is")
        before = supervisors(os.getpid())
        with backend.session(Setup()) as session:
            session.exec("sleep 300 &")
            (supervisor,) = supervisors(os.getpid()) - before
            status = Path(f"/proc/{supervisor}/status").read_text()
            assert f"Uid:\t{HOST_UID}\t{HOST_UID}\t{HOST_UID}\t{HOST_UID}\n" in status

    def test_sessions_of_one_template_share_no_namespace(self, backend: BubblewrapBackend) -> None:
        listing = "for name in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$name; done"
        with backend.session(Setup()) as one, backend.session(Setup()) as other:
            spaces = [one.exec(listing).output.split(), other.exec(listing).output.split()]
            one.exec("echo mine | tee /tmp/it /home/agent/it /run/it; sleep 300 &")
            assert other.exec("cat /tmp/it /home/agent/it /run/it 2> /dev/null; pgrep sleep").output == ""
        servers = [str(Path(f"/proc/self/ns/{name.partition(':')[0]}").readlink()) for name in spaces[0]]
        assert len({*spaces[0], *spaces[1], *servers}) == 21

    def test_root_of_the_machine_without_another_user_reaches_nothing(self, folder: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("the server is not root here: its agents are the user that it is")
        host = dataclasses.replace(find_host(folder), drop=False)
        with BubblewrapBackend(folder, host).session(Setup()) as session:
            assert "Read-only file system" in session.exec("echo 1 > /proc/sys/kernel/panic").output
            assert "CapEff:\t0000000000000000" in session.exec("cat /proc/self/status").output

    def test_a_forked_worker_has_a_template_of_its_own(self, folder: Path) -> None:
        script = f"""
import os
from pathlib import Path
from sandbox.bubblewrap.backend import find
from sandbox.protocol import Setup
backend = find(Path({str(folder)!r}))
session = backend.session(Setup())
child = os.fork()
if not child:
    with backend.session(Setup()) as own:
        print(own.exec("echo child").output, flush=True)
    raise SystemExit
os.waitpid(child, 0)
print(session.exec("echo parent").output, flush=True)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.split() == ["child", "parent"]

    def test_nothing_of_the_servers_environment_gets_in(
        self, backend: BubblewrapBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("API_KEY_OF_THE_SERVER", "hidden")
        with backend.session(Setup()) as session:
            assert session.exec("env | grep hidden; grep -rsa hidden /proc/[0-9]*/environ").output == ""

    def test_findings_say_which_limits_work(self, backend: BubblewrapBackend) -> None:
        said = {finding.name: finding for finding in backend.findings()}
        assert said["session"].works and "opened, checked and removed" in said["session"].detail
        assert {"bubblewrap", "user", "limit of memory", "limit of pids", "limit of cpu", "root"} <= set(said)
        assert all(finding.works or finding.remedy for finding in said.values())


class TestWithoutControlGroups:
    @pytest.fixture
    def poor(self, folder: Path) -> BubblewrapBackend:
        return BubblewrapBackend(folder, dataclasses.replace(find_host(folder), cgroups=None))

    def test_rlimits_replace_control_groups(self, poor: BubblewrapBackend) -> None:
        with poor.session(Setup(limits=SessionLimits(pids=40))) as session:
            assert session.exec("perl -e '$x = q(a) x 1e9; print 1'").exit_code != 0
            result = session.exec("i=0; while [ $i -lt 60 ]; do sleep 300 & i=$((i+1)); done; echo $i", timeout=10)
            assert "Cannot fork" in result.output
            assert session.exec("echo $((6 * 7)) | cat").output.endswith("42\n")
            session.exec("bomb() { bomb | bomb & }; bomb; sleep 60", timeout=1)
            assert session.exec("echo $((6 * 7)) | cat").output.endswith("42\n")
            assert session.check("true", terminal="exit").passed

    def test_the_findings_say_so(self, poor: BubblewrapBackend) -> None:
        said = {finding.name: finding for finding in poor.findings()}
        assert not said["limit of memory"].works and "not for the session as a whole" in said["limit of memory"].detail
        assert "Delegate" in said["limit of memory"].remedy and said["limit of pids"].works

    def test_nothing_is_left(self, poor: BubblewrapBackend, folder: Path) -> None:
        poor.session(Setup()).close()
        assert list((folder / "bubblewrap").iterdir()) == []


class TestWhatIsMissing:
    def test_bubblewrap(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
            bubblewrap_backend(folder)

    def test_a_way_to_the_root_that_was_built(self, folder: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("the server is not root here: what it can read its agents can")
        (folder / "rootfs").mkdir(parents=True)
        folder.chmod(0o700)
        with pytest.raises(SandboxUnavailable, match=f"chmod o.x.*{folder}"):
            bubblewrap_backend(folder)

    def test_leave_to_make_namespaces(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        refusing = tmp_path / "bwrap"
        refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
        refusing.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        with pytest.raises(SandboxUnavailable, match="No permissions to create new namespace"):
            find(folder)
