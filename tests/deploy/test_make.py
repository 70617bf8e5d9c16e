"""What `make` says on a machine that cannot run Winnow yet, and that it does nothing twice."""

import os
import re
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


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("[ $1 = --version ] && echo Python 3.9.18 && exit; exit 1", "needs Python 3.11 or newer; .* is Python 3.9.18"),
        ("[ $1 = -m ] && mkdir -p .venv/bin && : > .venv/bin/python && exit 1; exit 0", "apt install python3-venv"),
    ],
)
def test_a_python_that_is_too_old_or_has_no_venv_leaves_nothing_half_made(clone: Path, script: str, said: str) -> None:
    python = clone / "python3"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)

    done = _make(clone, "install", f"PYTHON={python}")

    assert done.returncode != 0 and re.search(said, done.stderr)
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


def _docker(clone: Path, script: str) -> str:
    """A PATH whose `docker` is this shell script."""
    folder = clone / "programs"
    folder.mkdir()
    (folder / "docker").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "docker").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("version", ["2.24.0", "v2.26.1-4", "v5.0.2"])
def test_compose_that_is_new_enough_is_started(clone: Path, version: str) -> None:
    path = _docker(clone, f'[ "$3" = --short ] && echo {version} && exit; echo "started: $*"')

    done = _make(clone, "up", path=path)

    assert (done.returncode, done.stdout) == (0, "started: compose up --build\n"), done.stderr


@pytest.mark.parametrize("version", ["2.23.3", "v2.3.0", "1.29.2"])
def test_compose_that_is_too_old_is_named(clone: Path, version: str) -> None:
    path = _docker(clone, f'[ "$3" = --short ] && echo {version} && exit; echo "started: $*"')

    done = _make(clone, "up", path=path)

    assert done.returncode != 0
    assert f"needs Docker Compose 2.24 or newer; this is {version}." in done.stderr
    assert "started" not in done.stdout


def test_docker_without_compose_is_said(clone: Path) -> None:
    done = _make(clone, "up", path=_docker(clone, "echo \"docker: 'compose' is not a docker command.\" >&2; exit 1"))

    assert done.returncode != 0
    assert "needs Docker with the plugin Compose, 2.24 or newer" in done.stderr


def test_base_images_are_named_by_digest_and_pinned_again_by_make(clone: Path) -> None:
    files = ("Dockerfile", "compose.yaml", "sandbox/docker/Dockerfile", "sandbox/docker/image.py", "deploy/pin-images")
    for name in files:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    before = {name: (clone / name).read_text() for name in files[:4]}
    answers = 'case "$1" in image) echo "${5%%:*}@sha256:$(printf %064d 7)";; esac'

    done = _make(clone, "pin-images", path=_docker(clone, answers))

    assert done.returncode == 0, done.stderr
    named = re.compile(r"(?:ARG BASE=|BASE = \"|_IMAGE:-)([^@\"}\s]+)@sha256:([0-9a-f]{64})\b")
    for name, text in before.items():
        tags, digests = zip(*named.findall(text), strict=True)
        assert (
            len(set(digests)) == len(tags) == len(re.findall(r"ARG BASE|^BASE =|^    image: ", text, re.MULTILINE))
        ), name
        assert named.findall((clone / name).read_text()) == [(tag, f"{7:064d}") for tag in tags], name


def test_requirements_are_pinned_hashed_and_name_no_place() -> None:
    for name in ("base.txt", "dev.txt", "telemetry.txt"):
        text = (ROOT / "requirements" / name).read_text()
        assert "://" not in text
        assert "--index-url" not in text
        assert "--find-links" not in text
        pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert all("==" in line for line in pins), name
        assert text.count("--hash=sha256:") >= len(pins), name
