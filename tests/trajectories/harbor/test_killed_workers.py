"""A worker that is killed twice while it watches a job: no trial is lost, none is there twice. Also with Harbor."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import harbor
from tests.runs.elsewhere import run_elsewhere
from tests.sandbox.harbor.tasks import DOCKERFILE
from tests.sandbox.harbor.test_command import SCRIPTED, make_task

MODULE = "tests.trajectories.harbor.killed_workers"


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARBOR_PROVIDERS", "elsewhere; docker")
    monkeypatch.setenv("IMPORT_FOLDERS", str(tmp_path))


@pytest.mark.slow
def test_no_trial_is_lost_and_none_is_there_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOR_COMMAND", f"{sys.executable} {SCRIPTED}")
    make_task(tmp_path, "sum", seconds=[0.5])
    make_task(tmp_path, "sort", seconds=[0.5], rewards=[0])
    given = (str(tmp_path / "tasks"), "elsewhere", "terminus-2", "4")
    found = run_elsewhere(MODULE, *given, folder=tmp_path / "data", database="")
    assert (found["state"], found["kills"], found["runs"]) == ("succeeded", 2, False), found
    assert found["trials"] == [["acme/sort", "terminus-2", 0]] * 4 + [["acme/sum", "terminus-2", 1.0]] * 4
    assert found["trajectories"] == 8 and found["counted"] == [9, 9, 0]


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(600)
def test_the_real_harbor_with_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOR_COMMAND", harbor())
    write_task(tmp_path / "tasks" / "hello")
    given = (str(tmp_path / "tasks"), "docker", "oracle,nop", "2")
    before = containers()
    found = run_elsewhere(MODULE, *given, folder=tmp_path / "data", database="")
    assert (found["state"], found["kills"], found["runs"]) == ("succeeded", 2, False), found
    assert found["trials"] == [["winnow/hello", "nop", 0.0]] * 2 + [["winnow/hello", "oracle", 1.0]] * 2
    assert not {name for name in containers() - before if name.startswith("hello__")}


def containers() -> set[str]:
    names = ["docker", "ps", "--all", "--format", "{{.Names}}"]
    return set(subprocess.run(names, capture_output=True, text=True, check=True).stdout.split())


def write_task(task: Path) -> None:
    """Write a task of Harbor's format on the image that the tests import."""
    files = {
        "task.toml": (
            'schema_version = "1.4"\n[task]\nname = "winnow/hello"\nversion = "1.0.0"\ndescription = "Write a file"\n'
            '[verifier]\ntimeout_sec = 60.0\n[agent]\ntimeout_sec = 60.0\n[environment]\nnetwork_mode = "public"\n'
            "build_timeout_sec = 120.0\ncpus = 1\nmemory_mb = 256\n"
        ),
        "instruction.md": "Write hello to /app/hello.txt.\n",
        "environment/Dockerfile": DOCKERFILE,
        "solution/solve.sh": "#!/bin/bash\necho hello > /app/hello.txt\n",
        "tests/test.sh": (
            "#!/bin/bash\nmkdir -p /logs/verifier\n"
            'if [ "$(cat /app/hello.txt)" = hello ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n'
        ),
    }
    for name, text in files.items():
        path = task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
