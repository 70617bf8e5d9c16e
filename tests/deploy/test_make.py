"""What `make` says on a machine that cannot run Winnow yet, and that it does nothing twice."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the parts of the repository that `make install` reads."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    return tmp_path


def _make(clone: Path, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path or os.environ["PATH"]}
    for inherited in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # of the `make test` that runs this
        environment.pop(inherited, None)
    return subprocess.run(
        ["make", *words], cwd=clone, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def _only(tmp_path: Path, *programs: str) -> str:
    """A PATH with these programs and no other."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in programs:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


def test_no_python_at_all_is_said(clone: Path) -> None:
    done = _make(clone, "install", path=_only(clone, "make", "bash", "rm", "touch"))

    assert done.returncode != 0
    assert "needs Python 3.11 or newer, and none is on the PATH" in done.stderr
    assert not (clone / ".venv").exists()


def test_a_python_that_is_too_old_is_named(clone: Path) -> None:
    old = clone / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.18 && exit\nexit 1\n')
    old.chmod(0o755)

    done = _make(clone, "install", f"PYTHON={old}")

    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert "is Python 3.9.18" in done.stderr
    assert not (clone / ".venv").exists()


def test_a_python_without_venv_leaves_nothing_half_made(clone: Path) -> None:
    bare = clone / "python3"
    bare.write_text('#!/bin/sh\n[ "$1" = -m ] && mkdir -p .venv/bin && : > .venv/bin/python && exit 1\nexit 0\n')
    bare.chmod(0o755)

    done = _make(clone, "install", f"PYTHON={bare}")

    assert done.returncode != 0
    assert "apt install python3-venv" in done.stderr
    assert not (clone / ".venv").exists()


def test_an_installation_that_is_up_to_date_is_left_alone(clone: Path) -> None:
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/bin/python").write_text("#!/bin/sh\necho used >&2\nexit 1\n")
    (clone / ".venv/bin/python").chmod(0o755)
    (clone / ".venv/.runtime").touch()

    again = _make(clone, "install")
    assert (again.returncode, again.stderr) == (0, "")

    newer = (clone / ".venv/.runtime").stat().st_mtime + 10
    os.utime(clone / "requirements/base.txt", (newer, newer))
    changed = _make(clone, "install")
    assert changed.returncode != 0
    assert "used" in changed.stderr


def test_requirements_are_pinned_hashed_and_name_no_place() -> None:
    for name in ("base.txt", "dev.txt"):
        text = (ROOT / "requirements" / name).read_text()
        assert "://" not in text
        assert "--index-url" not in text
        assert "--find-links" not in text
        pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert all("==" in line for line in pins), name
        assert text.count("--hash=sha256:") >= len(pins), name
