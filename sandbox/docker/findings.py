"""What sessions in Docker need of the engine, and what of it is there. Asks the engine twice, starts nothing."""

from collections.abc import Iterator
from typing import TypedDict, cast

from sandbox.docker.engine import QUICK, DockerSettings, Engine, place, told_as
from sandbox.docker.image import image_recipe, is_current
from sandbox.errors import SandboxUnavailable
from sandbox.protocol import Finding

BUILD = "manage.py sandbox build"


class _Info(TypedDict, total=False):
    """What is read of what the engine says of itself."""

    ServerVersion: str
    Runtimes: dict[str, object]
    MemoryLimit: bool
    PidsLimit: bool
    CpuCfsQuota: bool


def needs(engine: Engine, settings: DockerSettings) -> Iterator[Finding]:
    try:
        with told_as(SandboxUnavailable), engine.client(QUICK) as client:
            info = cast(_Info, client.info())
            recipe = image_recipe(client, settings.image)
    except SandboxUnavailable as missing:
        remedy = "Start Docker, or name its socket in DOCKER_HOST; whoever runs the worker needs access to it."
        yield Finding("engine", False, str(missing), remedy)
        return
    yield Finding("engine", True, f"Docker {info.get('ServerVersion', '')} at {place()}")
    yield _limits(info)
    if settings.runtime:
        known = settings.runtime in info.get("Runtimes", {})
        remedy = "" if known else "Install it and enter it in Docker's daemon.json, or leave SANDBOX_RUNTIME empty."
        yield Finding("runtime", known, settings.runtime, remedy)
    yield _image(settings.image, recipe)


def _limits(info: _Info) -> Finding:
    """An engine that cannot bound something starts the container all the same, without the bound."""
    kept = {
        "memory": info.get("MemoryLimit", False),
        "processes": info.get("PidsLimit", False),
        "processor": info.get("CpuCfsQuota", False),
    }
    lost = [name for name, works in kept.items() if not works]
    if lost:
        remedy = "The engine may not use the kernel's cgroups; see the warnings of `docker info`."
        return Finding("limits", False, f"not bounded: {', '.join(lost)}", remedy)
    return Finding("limits", True, f"{', '.join(kept)} are bounded")


def _image(image: str, recipe: str | None) -> Finding:
    if recipe is None:
        return Finding("image", False, f"{image} is not there", f"Run `{BUILD}`.")
    if not is_current(recipe):
        return Finding("image", True, f"{image}, which another version of Winnow built: run `{BUILD}` again")
    return Finding("image", True, image)
