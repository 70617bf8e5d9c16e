"""The image on a base made from Debian packages, and containers started from it as `compose.yaml` starts services."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.parts import missing

ROOT = Path(__file__).resolve().parents[2]
BASE, SERVERS, TAG = "winnow-test-base:bookworm", "winnow-test-servers:bookworm", "winnow-test:latest"
CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def docker(*words: str, timeout: int = 120) -> str:
    """The output of one Docker command; its error text is in the failure."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"docker {' '.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout.strip()


@contextmanager
def _one_builder() -> Iterator[None]:
    """Test processes build one after the other: the second one finds the images."""
    with (Path(tempfile.gettempdir()) / f"winnow-test-images-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_base() -> None:
    """A base image from Debian's packages alone, with this machine's certificate authorities; no registry is asked."""
    if docker("images", "--quiet", BASE):
        return
    if shutil.which("mmdebstrap") is None or os.geteuid() != 0:
        missing("a base image needs mmdebstrap, run as root")
    mirror = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
    bootstrap = subprocess.Popen(
        [
            *("mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,python3-venv,ca-certificates"),
            f"--customize-hook=upload {os.environ.get('PIP_CERT', CA_BUNDLE)} {CA_BUNDLE}",
            *("bookworm", "-", mirror),
        ],
        stdout=subprocess.PIPE,
    )
    imported = subprocess.run(["docker", "import", "-", BASE], stdin=bootstrap.stdout, capture_output=True, check=False)
    assert bootstrap.wait(timeout=300) == 0, "mmdebstrap failed"
    assert imported.returncode == 0, imported.stderr.decode()


def _build(tag: str, folder: Path, *options: str) -> str:
    command = ("build", "--quiet", "--network", "host", "--tag", tag, "--build-arg", f"BASE={BASE}")
    docker(*command, *options, str(folder), timeout=900)
    return tag


def build_image() -> str:
    """The product's image from this working tree."""
    with _one_builder():
        _build_base()
        return _build(TAG, ROOT, "--build-arg", f"PIP_CERT={CA_BUNDLE}")


def build_servers() -> str:
    """PostgreSQL and Redis from Debian's packages, in place of the official images."""
    with _one_builder():
        _build_base()
        return _build(SERVERS, ROOT / "tests/deploy/servers")


def eventually(
    what: str, happens: Callable[[], bool], *, log: Callable[[], str] = lambda: "", seconds: float = 90
) -> None:
    """Waits until it `happens`; the `log` is read when it did not."""
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s\n{log()}"
        time.sleep(0.3)


@dataclass
class Installation:
    """Containers of one image that share a data volume, on the host's network."""

    image: str
    name: str
    environment: Mapping[str, str]
    started: list[str] = field(default_factory=list)

    def _options(self) -> list[str]:
        settings = [word for key, value in self.environment.items() for word in ("--env", f"{key}={value}")]
        return [
            *("--network", "host", "--volume", f"{self.name}:/data"),
            *("--cap-drop", "ALL", "--security-opt", "no-new-privileges:true", *settings),
        ]

    def run(self, *command: str) -> str:
        """One command in a container of its own, as the migrations are."""
        return docker("run", "--rm", *self._options(), self.image, *command)

    def start(self, service: str, *command: str) -> None:
        container = f"{self.name}-{service}"
        docker("run", "--detach", "--name", container, *self._options(), self.image, *command)
        self.started.append(container)

    def inside(self, service: str, *command: str) -> str:
        return docker("exec", f"{self.name}-{service}", *command)

    def logs(self, service: str) -> str:
        words = ["docker", "logs", "--tail", "500", f"{self.name}-{service}"]
        return subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=30
        ).stdout

    def stop(self, service: str) -> int:
        """The exit status after SIGTERM."""
        container = f"{self.name}-{service}"
        docker("stop", "--time", "30", container)
        return int(docker("inspect", "--format", "{{.State.ExitCode}}", container))

    def remove(self) -> None:
        for container in self.started:
            docker("rm", "--force", container)
        docker("volume", "rm", "--force", self.name)


@contextmanager
def installation(image: str, name: str, environment: Mapping[str, str]) -> Iterator[Installation]:
    made = Installation(image, name, environment)
    try:
        yield made
    finally:
        made.remove()
