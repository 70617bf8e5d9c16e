"""A scenario's own task on a machine like Harbor's: what the agent ran is on record for the checker.

The machine is a bubblewrap sandbox with one user. Real users are tried with Harbor itself (`test_harbor_dataset`).
"""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from sandbox.harbor.export import NotExported, task_of
from sandbox.harbor.task_folder import TaskFolder
from sandbox.protocol import Fixture, Setup

pytestmark = pytest.mark.bubblewrap
TODO = '#! /bin/sh\n# tells\necho "$0 $*"\n'
# The folders of the machine's own root that an exported task adds to, and where they are here.
MOVED = {b"/usr/lib/winnow": b"/own", b"/usr/bin/winnow-run": b"/opt/.winnow-run", b"/run/winnow.sock": b"/own/sock"}
_TRIAL = """
mkdir -p /own/record
chmod -R +x /own /opt/.winnow-run
[ "$1" = no-recorder ] || sh /own/start || exit
cd /home/agent
sh /solution/solve.sh > /logs/said 2>&1
sh /tests/test.sh > /logs/printed 2>&1
"""


def task(checker: str, reference: str = "exit", *, mode: int = 0o755, content: str = TODO) -> TaskFolder:
    todo = Fixture("/usr/local/bin/todo", content.encode(), mode)
    return task_of(
        name="records",
        title="",
        setup=Setup(fixtures=[todo]),
        reference=f"{reference}\nexit",
        checker=checker,
        expected_terminal="exit",
        provenance={},
    )


def reward(task: TaskFolder, folder: Path, *, start: str = "") -> str:
    """The reward after the reference; empty if the tests wrote none."""
    for path, file in task.files.items():
        data = file.data
        for there, here in MOVED.items():
            data = data.replace(there, here)
        named = f"/{path.removeprefix('environment/root/')}".encode()
        for there, here in MOVED.items():
            named = named.replace(there, here)
        place = folder / named.decode().lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if path.endswith("winnow-run") else file.mode)
    for name in ("home/agent", "srv", "opt", "var/tmp", "tmp", "logs", "usr/local"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    binds: Mapping[str, Path] = {
        **{f"/{path.name}": path for path in folder.iterdir() if path.name not in {"usr", "environment", "etc"}},
        "/usr/local": folder / "usr/local",
    }
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--dev", "/dev"]
    command += ["--proc", "/proc", *(part for name in ("bin", "lib", "lib64") for part in _link(name))]
    command += [part for name, path in binds.items() for part in ("--bind", str(path), name)]
    subprocess.run([*command, "sh", "-c", _TRIAL, "trial", start], check=False, timeout=60, start_new_session=True)
    written = folder / "logs/verifier/reward.txt"
    return written.read_text().strip() if written.exists() else ""


def _link(name: str) -> list[str]:
    return ["--symlink", f"usr/{name}", f"/{name}"] if Path(f"/usr/{name}").is_dir() else []


@pytest.mark.parametrize(
    "run",
    [
        "todo show 1 > /dev/null",
        "cd /usr/local && ./bin/todo show 1 later",
        "cp /usr/local/bin/todo /tmp/mine && /tmp/mine show 1",
    ],
)
def test_a_run_is_on_record(run: str, tmp_path: Path) -> None:
    assert reward(task("asked todo show 1", run), tmp_path) == "1"


@pytest.mark.parametrize(
    "run",
    [
        "true",
        "cat /usr/local/bin/todo",
        "todo show 2",
        "todo show 1 later",
        "echo exit > /usr/local/bin/todo; todo show 1",
        "sed -i s/tells/lies/ /usr/local/bin/todo; todo show 1",
    ],
)
def test_what_is_no_run_is_not_on_record(run: str, tmp_path: Path) -> None:
    assert reward(task("asked -x todo show 1", run), tmp_path) == "0"


def test_programs_run_as_before(tmp_path: Path) -> None:
    checker = '[ "$(cat /home/agent/out)" = "/usr/local/bin/todo a b  c" ] && asked todo'
    assert reward(task(checker, "todo a 'b  c' > out"), tmp_path) == "1"


def test_the_checker_sees_programs_as_they_were(tmp_path: Path) -> None:
    checker = (
        f"[ \"$(cat /usr/local/bin/todo /srv/copy)\" = '{TODO * 2}'".rstrip("\n'") + "' ]\nunchanged && asked todo"
    )
    assert reward(task(checker, "todo\ncp /usr/local/bin/todo /srv/copy"), tmp_path) == "1"


def test_a_full_door_stops_no_run(tmp_path: Path) -> None:
    connect = 'socket my $s, AF_UNIX, SOCK_STREAM, 0; connect $s, pack_sockaddr_un("/own/sock"); print "1\\n"; sleep 60'
    stuck = f"mkfifo told; perl -MSocket -e '$| = 1; {connect}' > told & read x < told"
    assert reward(task("asked todo", f"{stuck}\ntodo"), tmp_path) == "1"


def test_without_a_recorder_there_is_no_verdict(tmp_path: Path) -> None:
    assert reward(task("asked todo || true", "todo"), tmp_path, start="no-recorder") == ""
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    assert reward(task("unchanged", "todo"), tmp_path, start="no-recorder") == "1"


def test_a_program_without_an_interpreter_is_refused() -> None:
    with pytest.raises(NotExported, match="nothing records the runs of /usr/local/bin/todo"):
        task("asked todo", content="echo x\n")
    assert task("asked other", content="echo x\n")
