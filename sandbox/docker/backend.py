"""Sessions in Docker containers: a fresh container for each, attached to its supervisor; and what they need from the
engine.
"""

import functools
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict, cast

from sandbox.docker.channel import AttachedChannel
from sandbox.docker.container import remove_container, start_container
from sandbox.docker.engine import QUICK, DockerSettings, Engine, docker_host, engine_address, engine_errors_as
from sandbox.docker.image import BASE, Say, build_image, image_recipe, is_current
from sandbox.errors import SandboxError, SandboxFailed, SandboxUnavailable
from sandbox.protocol import SESSION, BackendFinding, Labels, SandboxSession, Setup
from sandbox.session import open_session, supervisor_command
from sandbox.setup import check_setup

PREFIX = "winnow."
HOST = f"{PREFIX}host"
# A sandbox without an item's label was opened by hand; it is removed after an hour.
UNLABELLED_SECONDS = 3600
# Where a container sees its control group's events: version 2, then version 1.
_GROUPS = "/sys/fs/cgroup"
COUNTERS = (
    *(f"{_GROUPS}/memory.events", f"{_GROUPS}/pids.events"),
    *(f"{_GROUPS}/memory/memory.oom_control", f"{_GROUPS}/pids/pids.events"),
)


class _Listed(TypedDict):
    """The fields used of the engine's list of containers; `Created` in seconds since 1970."""

    Id: str
    Created: int
    Labels: dict[str, str] | None


class DockerBackend:
    """Sessions on the engine that the environment names. `folder` keeps the label of this installation's containers."""

    name = "docker"

    def __init__(self, folder: Path, settings: DockerSettings, engine: Engine) -> None:
        self._settings = settings
        self._engine = engine
        self._host = instance_of(folder)

    def session(self, setup: Setup) -> SandboxSession:
        check_setup(setup)
        labels = {f"{PREFIX}{key}": value for key, value in setup.labels.items()} | {HOST: self._host}
        started = start_container(
            self._engine, self._settings, command=supervisor_command(COUNTERS), limits=setup.limits, labels=labels
        )
        channel = AttachedChannel(self._engine, started)
        try:
            return open_session(channel, setup)
        except BaseException:
            channel.close()
            raise

    def findings(self) -> Sequence[BackendFinding]:
        found = self.needs()
        return [*found, self._trial()] if all(one.works for one in found) else found

    def reap(self, is_alive: Callable[[Labels], bool]) -> int:
        with engine_errors_as(SandboxFailed), self._engine.client() as client:
            listed = cast(list[_Listed], client.containers(all=True, filters={"label": f"{HOST}={self._host}"}))
        dead = [row["Id"] for row in listed if not _is_owned(row, is_alive)]
        for container in dead:
            remove_container(self._engine, container)
        return len(dead)

    def build(self, say: Say, *, base: str = "", rootfs: Path | None = None, network: str = "") -> str:
        """Build the image of sessions and return its name; raises `BuildFailed`."""
        image = self._settings.image
        build_image(self._engine, image=image, say=say, base=base or BASE, rootfs=rootfs, network=network)
        return image

    def needs(self) -> list[BackendFinding]:
        """The findings without the trial session; `find` requires them."""
        return list(needs(self._engine, self._settings))

    def _trial(self) -> BackendFinding:
        began = time.monotonic()
        try:
            with self.session(Setup(labels={"trial": uuid.uuid4().hex})) as session:
                said = session.exec("echo $((6 * 7))").output.strip()
                passed = session.check("exit 0", terminal="").passed
        except SandboxError as error:
            return BackendFinding(SESSION, False, str(error), "See `docker info` and the engine's own log.")
        took = time.monotonic() - began
        return BackendFinding(SESSION, said == "42" and passed, f"opened, used and removed in {took:.2f} s")


def find(folder: Path) -> DockerBackend:
    """Return the backend if it has all it needs; else raise `SandboxUnavailable` with what to do."""
    found = docker_backend(folder)
    for finding in found.needs():
        if not finding.works:
            raise SandboxUnavailable(f"Docker's {finding.name}: {finding.detail}. {finding.remedy}")
    return found


def docker_backend(folder: Path) -> DockerBackend:
    """Return the backend without trying it. Raises `SandboxUnavailable` for an invalid setting."""
    return DockerBackend(folder, DockerSettings.from_environment(), _engine(docker_host()))


@functools.cache
def _engine(_address: str) -> Engine:
    """One per process and address, so that connections are reused."""
    return Engine()


def instance_of(folder: Path) -> str:
    """The name of this installation on a shared engine: made once, kept in the sandbox's folder."""
    path = folder / "instance"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f".instance.{uuid.uuid4().hex}"
        aside.write_text(uuid.uuid4().hex)
        try:
            path.hardlink_to(aside)
        except FileExistsError:
            pass  # another process was first; its name counts
        finally:
            aside.unlink()
    return path.read_text()


def _is_owned(row: _Listed, is_alive: Callable[[Labels], bool]) -> bool:
    labels = {key.removeprefix(PREFIX): value for key, value in (row["Labels"] or {}).items()}
    if not labels.keys() & {"item", "server"}:
        return time.time() - row["Created"] < UNLABELLED_SECONDS
    return is_alive(labels)


BUILD = "manage.py sandbox build"


class _Info(TypedDict, total=False):
    """The fields used of `docker info`."""

    ServerVersion: str
    Runtimes: dict[str, object]
    MemoryLimit: bool
    PidsLimit: bool
    CpuCfsQuota: bool


def needs(engine: Engine, settings: DockerSettings) -> Iterator[BackendFinding]:
    try:
        with engine_errors_as(SandboxUnavailable), engine.client(QUICK) as client:
            info = cast(_Info, client.info())
            recipe = image_recipe(client, settings.image)
    except SandboxUnavailable as missing:
        remedy = "Start Docker, or name its socket in DOCKER_HOST. The user that runs the worker needs access to it."
        yield BackendFinding("engine", False, str(missing), remedy)
        return
    yield BackendFinding("engine", True, f"Docker {info.get('ServerVersion', '')} at {engine_address()}")
    yield _limits(info)
    if settings.runtime:
        known = settings.runtime in info.get("Runtimes", {})
        remedy = "" if known else "Install it and add it to Docker's daemon.json, or leave SANDBOX_RUNTIME empty."
        yield BackendFinding("runtime", known, settings.runtime, remedy)
    yield _image(settings.image, recipe)


def _limits(info: _Info) -> BackendFinding:
    """An engine that cannot enforce a limit starts the container without it."""
    kept = {
        "memory": info.get("MemoryLimit", False),
        "processes": info.get("PidsLimit", False),
        "processor": info.get("CpuCfsQuota", False),
    }
    lost = [name for name, works in kept.items() if not works]
    if lost:
        remedy = "The engine may not use the kernel's cgroups; see the warnings of `docker info`."
        return BackendFinding("limits", False, f"not limited: {', '.join(lost)}", remedy)
    return BackendFinding("limits", True, f"{', '.join(kept)} are limited")


def _image(image: str, recipe: str | None) -> BackendFinding:
    if recipe is None:
        return BackendFinding("image", False, f"{image} does not exist", f"Run `{BUILD}`.")
    if not is_current(recipe):
        return BackendFinding("image", True, f"{image}, built by another version of Winnow: run `{BUILD}` again")
    return BackendFinding("image", True, image)
