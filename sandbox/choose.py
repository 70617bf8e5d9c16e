"""Which backend this machine has: Docker where its engine answers, else bubblewrap, else none and what to install."""

import threading
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.protocol import Backend

INSTALL = "Install Docker and run `manage.py sandbox build`, or install bubblewrap (`apt install bubblewrap`)."
_found: dict[tuple[str, Path], Backend] = {}
_finding = threading.Lock()


def choose_backend(wanted: str, *, folder: Path) -> Backend:
    """`wanted`: `docker`, `bubblewrap`, `auto` or `none`; `folder` is where a rootfs that was built here lies.

    A backend that works is kept for this process. Raises `SandboxUnavailable` with what is missing and how to get it.
    """
    with _finding:
        if (wanted, folder) not in _found:
            _found[wanted, folder] = _find(wanted, folder)
        return _found[wanted, folder]


def _find(wanted: str, folder: Path) -> Backend:
    if wanted == "none":
        raise SandboxUnavailable("Sandboxes are switched off here (SANDBOX=none).")
    if wanted != "auto":
        return _named(wanted, folder)
    reasons = []
    for name in ("docker", "bubblewrap"):
        try:
            return _named(name, folder)
        except SandboxUnavailable as missing:
            reasons.append(f"{name}: {missing}")
    raise SandboxUnavailable(f"No sandbox works here. {INSTALL} {' '.join(reasons)}")


def _named(name: str, folder: Path) -> Backend:
    """Each backend is imported when it is asked for: Docker's SDK alone costs a tenth of a second."""
    if name == "docker":
        from sandbox.docker.backend import find as find_docker

        return find_docker(folder)
    if name == "bubblewrap":
        from sandbox.bubblewrap.backend import find as find_bubblewrap

        return find_bubblewrap(folder)
    raise SandboxUnavailable(f"SANDBOX={name} is not known here: docker, bubblewrap, auto or none.")
