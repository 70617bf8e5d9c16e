"""Containers as the engine lists them, read without the tested code."""

from pathlib import Path
from typing import Any

from sandbox.docker.backend import HOST, instance_of
from sandbox.docker.engine import Engine


def containers_of(engine: Engine, folder: Path) -> list[str]:
    """The ids of this folder's containers on the engine, running or not."""
    with engine.client() as client:
        listed = client.containers(all=True, filters={"label": f"{HOST}={instance_of(folder)}"})
        return [str(row["Id"]) for row in listed]


def inspected(engine: Engine, container: str) -> dict[str, Any]:
    with engine.client() as client:
        return dict(client.inspect_container(container))
