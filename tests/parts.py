"""Parts of a machine that some tests need. A test without its part is skipped; in CI it fails."""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest

# The shell is Chromium without the parts around a page, and takes a third of its processor time.
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"
# The machines of Harbor's tasks begin from it: it has Perl and Python.
HARBOR_IMAGE = os.environ.get("TEST_HARBOR_IMAGE", "winnow-test-harbor")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def missing(reason: str) -> NoReturn:
    """End the running test because a part is missing: skip it, or fail it with `CI=true`."""
    if in_ci():
        pytest.fail(f"CI needs every part: {reason}", pytrace=False)
    pytest.skip(reason)


def shared_data(*names: str) -> Path:
    """Path of a shared data file or folder, e.g. `shared_data("turns", "mini_coder.jsonl")`."""
    path = SHARED_DATA.joinpath(*names)
    if not path.exists():
        missing(f"no shared data at ../shared/data/{'/'.join(names)}")
    return path


def chromium() -> str | None:
    """The browser's path: `CHROMIUM` of the environment, else the first one on the PATH."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def harbor() -> str:
    """The command of Harbor: `TEST_HARBOR` of the environment, else the one that `make harbor` installs. Without it or
    its image the running test is skipped, in CI too: Harbor needs a newer Python than Winnow."""
    command = os.environ.get("TEST_HARBOR") or str(ROOT / ".venv/harbor/bin/harbor")
    if shutil.which(command) is None:
        pytest.skip("no Harbor: `make harbor` installs it (it needs Python 3.12), or TEST_HARBOR names its command")
    if not _runs("docker", "compose", "version"):
        pytest.skip("docker has no plugin compose, by which Harbor starts its machines")
    if not _runs("docker", "image", "inspect", HARBOR_IMAGE):
        pytest.skip(f"no Docker image {HARBOR_IMAGE}: `make harbor` makes it, or TEST_HARBOR_IMAGE names another")
    return command


def _runs(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0


def _no_postgres() -> str | None:
    scheme = urlsplit(os.environ.get("DATABASE_URL", "")).scheme
    return None if scheme in {"postgres", "postgresql"} else "DATABASE_URL names no PostgreSQL"


def _no_redis() -> str | None:
    url = os.environ.get("TEST_BROKER_URL", "")
    parts = urlsplit(url)
    if parts.scheme not in {"redis", "rediss"}:
        return "TEST_BROKER_URL names no Redis"
    try:
        socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 6379), timeout=2).close()
    except OSError as error:
        return f"the Redis of TEST_BROKER_URL does not answer: {error}"
    return None


def _no_docker() -> str | None:
    return None if _runs("docker", "version") else "no Docker daemon answers"


def _no_browser() -> str | None:
    return None if chromium() else f"none of {', '.join(CHROMIUM_NAMES)} is installed"


def _no_bubblewrap() -> str | None:
    works = _runs("bwrap", "--ro-bind", "/", "/", "--unshare-all", "true")
    return None if works else "bwrap is not installed or may not make namespaces"


PARTS = {
    "postgres": _no_postgres,
    "redis": _no_redis,
    "docker": _no_docker,
    "browser": _no_browser,
    "bubblewrap": _no_bubblewrap,
}
