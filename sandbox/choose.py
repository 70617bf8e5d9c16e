"""Which backend this machine has: Docker where its engine answers, else bubblewrap, else none and what to install."""

from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.protocol import Backend


def choose_backend(wanted: str, *, folder: Path) -> Backend:
    """`wanted`: `docker`, `bubblewrap`, `auto` or `none`; `folder` is where a rootfs that was built here lies.

    Raises `SandboxUnavailable` with what is missing and how to get it.
    """
    raise SandboxUnavailable(f"No sandbox is there yet for SANDBOX={wanted}.")
