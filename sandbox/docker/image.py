"""The image of Docker sessions, built on a registry's base image, or on a root archive without a registry."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypedDict, cast

from docker.errors import APIError, ImageNotFound

from sandbox.docker.engine import BoundedClient, Engine, engine_errors_as
from sandbox.errors import BuildFailed
from sandbox.rootfs import PARTS, RECIPE

BASE = "debian:bookworm-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241"
IMPORTED = "winnow-sandbox-root:imported"
LABEL = "winnow.recipe"
SECONDS = 1800
Say = Callable[[str], None]


class _Config(TypedDict):
    Labels: dict[str, str] | None


class _Inspected(TypedDict):
    """The fields used of an inspected image."""

    Id: str
    Config: _Config


class _Progress(TypedDict, total=False):
    """A line of the engine's build output."""

    stream: str
    error: str


def build_image(
    engine: Engine, *, image: str, say: Say, base: str = BASE, rootfs: Path | None = None, network: str = ""
) -> str:
    """Build `image` and return its id; raises `BuildFailed`.

    `rootfs` is a tar archive of a whole root made from packages.txt; it replaces `base`, and nothing is fetched.
    `network` is the engine's network for fetching packages (`host` on an engine without a bridge).
    """
    with engine_errors_as(BuildFailed), engine.client(SECONDS) as client:
        before = _id(client, image)
        if rootfs is not None:
            say(f"Importing {rootfs}")
            _import(client, rootfs)
        try:
            _build(
                client,
                image=image,
                say=say,
                arguments={"BASE": IMPORTED, "PACKAGES": "none"} if rootfs else {"BASE": base},
                network="none" if rootfs else network,
            )
        finally:
            if rootfs is not None:
                client.remove_image(IMPORTED, noprune=True)
        built = _id(client, image)
        if before and before != built:
            with suppress(APIError):  # sessions still use it
                client.remove_image(before)
        return built


def _id(client: BoundedClient, image: str) -> str:
    try:
        return _inspect(client, image)["Id"]
    except ImageNotFound:
        return ""


def image_recipe(client: BoundedClient, image: str) -> str | None:
    """The recipe that the image was built from, `""` if it is not labelled; None if there is no such image."""
    try:
        found = _inspect(client, image)
    except ImageNotFound:
        return None
    return (found["Config"].get("Labels") or {}).get(LABEL, "")


def _inspect(client: BoundedClient, image: str) -> _Inspected:
    return cast(_Inspected, client.inspect_image(image))  # type: ignore[no-untyped-call]  # the stubs give it no types


def is_current(recipe: str | None) -> bool:
    return recipe == RECIPE


def _import(client: BoundedClient, rootfs: Path) -> None:
    repository, tag = IMPORTED.split(":")
    output = client.import_image_from_file(str(rootfs), repository=repository, tag=tag)
    if "error" in output:
        raise BuildFailed(f"{rootfs}: {output.strip()[-500:]}")


def _build(client: BoundedClient, *, image: str, say: Say, arguments: Mapping[str, str], network: str) -> None:
    progress = client.build(
        path=str(PARTS),
        tag=image,
        buildargs=dict(arguments),
        labels={LABEL: RECIPE},
        network_mode=network or None,
        rm=True,
        forcerm=True,
        decode=True,
        timeout=SECONDS,
    )
    for line in cast(Iterable[_Progress], progress):
        if error := line.get("error"):
            raise BuildFailed(f"{image}: {error.strip()}")
        if text := line.get("stream", "").strip():
            say(text)
