"""deploy/systemd: `systemd-analyze verify` accepts the units, and every process has one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import missing

ROOT = Path(__file__).resolve().parents[2]
QUEUES_OF = {"winnow-models@.service": ("llm", "rollout"), "winnow-worker@.service": ("default", "sandbox")}
UNITS = sorted((ROOT / "deploy/systemd").iterdir())


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as after an installation of this checkout; the template once for each queue."""
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze is not installed")
    for unit in UNITS:
        text = unit.read_text().replace("/opt/winnow", str(ROOT))
        names = [unit.name.replace("@", f"@{queue}") for queue in QUEUES_OF[unit.name]] if "@" in unit.name else []
        for name in (unit.name, *names):
            (tmp_path / name).write_text(text)
    return tmp_path


def _verify(folder: Path) -> str:
    """What systemd says of the units in a folder; nothing if it has no complaint about them."""
    names = [str(path) for path in sorted(folder.iterdir()) if "@." not in path.name]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *names],
        env={"SYSTEMD_UNIT_PATH": f"{folder}:", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "" if done.returncode == 0 and "winnow" not in done.stderr else done.stderr


def test_systemd_accepts_the_units(installed: Path) -> None:
    assert _verify(installed) == ""


def test_systemd_refuses_a_program_that_is_missing(installed: Path) -> None:
    broken = installed / "winnow-web.service"
    broken.write_text(broken.read_text().replace("bin/gunicorn", "bin/no-such-program"))

    assert "no-such-program" in _verify(installed)


def test_the_target_starts_web_a_worker_for_every_queue_and_one_beat() -> None:
    wanted = re.search(r"^Wants=(.*)$", (ROOT / "deploy/systemd/winnow.target").read_text(), re.MULTILINE)
    assert wanted is not None

    workers = [name.replace("@", f"@{queue}") for name, queues in QUEUES_OF.items() for queue in queues]
    assert sorted(wanted[1].split()) == sorted(["winnow-web.service", "winnow-beat.service", *workers])


def test_the_command_of_a_worker_starts_it(tmp_path: Path) -> None:
    command = re.search(r"^ExecStart=(.*)$", (ROOT / "deploy/systemd/winnow-worker@.service").read_text(), re.MULTILINE)
    assert command is not None
    _, *words = command[1].replace("%%", "%").replace("%i", "default").split()
    # Without PYTHONPATH: a console script has neither the site nor the working directory on its path.
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "DATABASE_URL"}}
    worker = subprocess.Popen(
        [Path(sys.executable).with_name("celery"), *words],
        cwd=ROOT,
        env=environment | {"WINNOW_DATA": str(tmp_path), "CELERY_BROKER_URL": "", "LOG_LEVEL": "INFO"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert worker.stderr is not None
    said = []
    for line in worker.stderr:
        said.append(line)
        if line.endswith(" ready.\n"):
            worker.terminate()
    assert worker.wait() == 0, "".join(said)
