"""Sessions in Docker containers: one fresh container each, one supervisor in it, attached to once."""

import functools
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict, cast

from sandbox.docker.channel import AttachedChannel
from sandbox.docker.container import remove_container, start_container
from sandbox.docker.engine import QUICK, DockerSettings, Engine, address, told_as
from sandbox.docker.image import image_recipe, is_current
from sandbox.errors import SandboxError, SandboxFailed, SandboxUnavailable
from sandbox.protocol import Finding, Labels, Session, Setup
from sandbox.session import open_session, supervisor_command
from sandbox.setup import check_setup

BUILD = "manage.py sandbox build"
PREFIX = "winnow."
HOST = f"{PREFIX}host"
# A sandbox that says of no item whose it is was opened by hand; nobody can be asked for it, so it has an hour.
UNLABELLED_SECONDS = 3600


class _Listed(TypedDict):
    """What is read of the engine's list of containers; `Created` in seconds since 1970."""

    Id: str
    Created: int
    Labels: dict[str, str] | None


class _Info(TypedDict, total=False):
    """What is read of what the engine says of itself."""

    ServerVersion: str
    Runtimes: dict[str, object]
    MemoryLimit: bool
    PidsLimit: bool
    CpuCfsQuota: bool


class DockerBackend:
    """Sessions on the engine that the environment names. `folder` keeps the name by which this Winnow knows its own."""

    name = "docker"

    def __init__(self, folder: Path, settings: DockerSettings, engine: Engine) -> None:
        self._settings = settings
        self._engine = engine
        self._host = instance_of(folder)

    def session(self, setup: Setup) -> Session:
        check_setup(setup)
        labels = {f"{PREFIX}{key}": value for key, value in setup.labels.items()} | {HOST: self._host}
        started = start_container(
            self._engine, self._settings, command=supervisor_command(), limits=setup.limits, labels=labels
        )
        channel = AttachedChannel(self._engine, started)
        try:
            return open_session(channel, setup)
        except BaseException:
            channel.close()
            raise

    def findings(self) -> Sequence[Finding]:
        return list(self._findings())

    def reap(self, is_alive: Callable[[Labels], bool]) -> int:
        with told_as(SandboxFailed), self._engine.client() as client:
            listed = cast(list[_Listed], client.containers(all=True, filters={"label": f"{HOST}={self._host}"}))
        dead = [row["Id"] for row in listed if not _is_somebodys(row, is_alive)]
        for container in dead:
            remove_container(self._engine, container)
        return len(dead)

    def usable(self) -> None:
        """Raises `SandboxUnavailable` where the engine does not answer or has no image to begin with."""
        with told_as(SandboxUnavailable), self._engine.client(QUICK) as client:
            if image_recipe(client, self._settings.image) is None:
                raise SandboxUnavailable(f"Docker has no image {self._settings.image}: run `{BUILD}`.")

    def _findings(self) -> Iterator[Finding]:
        try:
            with told_as(SandboxUnavailable), self._engine.client(QUICK) as client:
                info = cast(_Info, client.info())
                recipe = image_recipe(client, self._settings.image)
        except SandboxUnavailable as missing:
            remedy = "Start Docker, or name its socket in DOCKER_HOST; whoever runs the worker needs access to it."
            yield Finding("engine", False, str(missing), remedy)
            return
        yield Finding("engine", True, f"Docker {info.get('ServerVersion', '')} at {address()}")
        yield from self._limits(info)
        if self._settings.runtime:
            yield self._runtime(info)
        yield self._image(recipe)
        if recipe is not None:
            yield self._trial()

    def _limits(self, info: _Info) -> Iterator[Finding]:
        kept = {
            "memory": info.get("MemoryLimit", False),
            "processes": info.get("PidsLimit", False),
            "processor": info.get("CpuCfsQuota", False),
        }
        lost = [name for name, works in kept.items() if not works]
        detail = f"not bounded: {', '.join(lost)}" if lost else ", ".join(kept)
        yield Finding(
            "limits", not lost, detail, "The kernel's cgroup controllers are off; see `docker info`." if lost else ""
        )

    def _runtime(self, info: _Info) -> Finding:
        runtime = self._settings.runtime
        known = runtime in info.get("Runtimes", {})
        remedy = "" if known else "Install it and enter it in Docker's daemon.json, or leave SANDBOX_RUNTIME empty."
        return Finding("runtime", known, runtime, remedy)

    def _image(self, recipe: str | None) -> Finding:
        image = self._settings.image
        if recipe is None:
            return Finding("image", False, f"{image} is not there", f"Run `{BUILD}`.")
        if not is_current(recipe):
            return Finding("image", False, f"{image} was built by another version of Winnow", f"Run `{BUILD}` again.")
        return Finding("image", True, image)

    def _trial(self) -> Finding:
        began = time.monotonic()
        try:
            with self.session(Setup(labels={"trial": uuid.uuid4().hex})) as session:
                said = session.exec("echo $((6 * 7))").output.strip()
                passed = session.check("exit 0", terminal="").passed
        except SandboxError as error:
            return Finding("session", False, str(error), "See `docker info` and the engine's own log.")
        took = (time.monotonic() - began) * 1000
        return Finding("session", said == "42" and passed, f"opened, used and removed in {took:.0f} ms")


def find(folder: Path) -> DockerBackend:
    """The backend, if the engine answers and has the image; else raises `SandboxUnavailable` with what to do."""
    found = docker_backend(folder)
    found.usable()
    return found


def docker_backend(folder: Path) -> DockerBackend:
    """The backend whether it can work or not: its findings say. Raises `SandboxUnavailable` for a senseless setting."""
    return DockerBackend(folder, DockerSettings.from_environment(), _engine(address()))


@functools.cache
def _engine(_address: str) -> Engine:
    """One per process and address, so that its connections are used again."""
    return Engine()


def instance_of(folder: Path) -> str:
    """The name of this Winnow on an engine that it may share: made once, kept in the sandbox's folder."""
    path = folder / "instance"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f".instance.{uuid.uuid4().hex}"
        aside.write_text(uuid.uuid4().hex)
        try:
            path.hardlink_to(aside)
        except FileExistsError:
            pass  # another process was first; its name holds
        finally:
            aside.unlink()
    return path.read_text()


def _is_somebodys(row: _Listed, is_alive: Callable[[Labels], bool]) -> bool:
    labels = {key.removeprefix(PREFIX): value for key, value in (row["Labels"] or {}).items()}
    if "item" not in labels:
        return time.time() - row["Created"] < UNLABELLED_SECONDS
    return is_alive(labels)
