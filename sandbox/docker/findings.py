"""What Docker sessions need from the engine, and whether it is there. Two requests; no container is started."""

from collections.abc import Iterator
from typing import TypedDict, cast

from sandbox.docker.engine import QUICK, DockerSettings, Engine, engine_address, engine_errors_as
from sandbox.docker.image import image_recipe, is_current
from sandbox.errors import SandboxUnavailable
from sandbox.protocol import BackendFinding

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
