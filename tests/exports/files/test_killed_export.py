"""An export of 100,000 rows whose worker is killed half-way, by SIGKILL."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROWS = 100_000
ROOT = Path(__file__).resolve().parents[3]


def step(folder: Path, *args: str) -> str:
    done = subprocess.run(
        command(*args), env=environment(folder), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", *args]


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"WINNOW_DATA": str(folder), "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "config.settings"}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.jsonl") if path.is_file())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("half", [1_000_000, 200_000_000])
def test_nothing_of_a_killed_export_can_be_downloaded_and_the_next_worker_finishes_it(
    tmp_path: Path, half: int
) -> None:
    """Killed at the beginning of the writing, and after 200 of about 850 MB."""
    step(tmp_path, "benchmarks.exports", "--fill", str(ROWS))
    run = step(tmp_path, "tests.exports.files.killed_export", "launch")
    files = tmp_path / "files" / "exports"
    worker = subprocess.Popen(
        command("tests.exports.files.killed_export", "work", run), env=environment(tmp_path), cwd=ROOT
    )
    until = time.monotonic() + 600
    while not files.exists() or size_of(files) < half:
        assert worker.poll() is None, "the worker ended before it was killed"
        assert time.monotonic() < until
        time.sleep(0.02)
    worker.send_signal(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    assert size_of(files) >= half

    seen = json.loads(step(tmp_path, "tests.exports.files.killed_export", "look", run))
    assert seen == {"answers": [404] * 5, "files": [], "state": "running", "page": 200}

    rows = json.loads(step(tmp_path, "tests.exports.files.killed_export", "finish", run))
    assert rows == {"sft-messages": {"train": ROWS}, "dpo": {"train": ROWS}}
