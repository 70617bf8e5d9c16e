"""The backend of this machine: Docker if its engine responds, else bubblewrap, else none and what to install."""

import functools
import threading
from collections.abc import Sequence
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.protocol import SESSION, BackendFinding, SandboxBackend

BACKENDS = ("docker", "bubblewrap")
INSTALL = "Install Docker and run `manage.py sandbox build`, or install bubblewrap (`apt install bubblewrap`)."
_found: dict[tuple[str, Path], SandboxBackend] = {}
_finding = threading.Lock()


def choose_backend(wanted: str, *, folder: Path) -> SandboxBackend:
    """Return the backend `wanted`: `docker`, `bubblewrap`, `auto` or `none`. `folder` contains a built root.

    A backend that works is kept for this process. Raises `SandboxUnavailable` with the missing parts and how to get
    them.
    """
    with _finding:
        if (wanted, folder) not in _found:
            _found[wanted, folder] = _find(wanted, folder)
        return _found[wanted, folder]


def findings_of(name: str, *, folder: Path) -> Sequence[BackendFinding]:
    """Return what `docker` or `bubblewrap` needs here and whether it is there, also if it is not the one chosen."""
    try:
        return _backend(name, folder).findings()
    except SandboxUnavailable as missing:
        return [BackendFinding(name, False, str(missing))]


def works(findings: Sequence[BackendFinding]) -> bool:
    """Whether a session was opened and used. Other failed findings make it weaker."""
    return any(finding.name == SESSION and finding.works for finding in findings)


def _find(wanted: str, folder: Path) -> SandboxBackend:
    if wanted == "none":
        raise SandboxUnavailable("Sandboxes are switched off here (SANDBOX=none).")
    if wanted in BACKENDS:
        return _working(wanted, folder)
    if wanted != "auto":
        raise SandboxUnavailable(f"SANDBOX={wanted} is not known here: docker, bubblewrap, auto or none.")
    reasons = []
    for name in BACKENDS:
        try:
            return _working(name, folder)
        except SandboxUnavailable as missing:
            reasons.append(f"{name}: {missing}")
    raise SandboxUnavailable(f"No sandbox works here. {INSTALL} {' '.join(reasons)}")


# Each backend is imported when it is used: Docker's SDK alone costs a tenth of a second.
def _working(name: str, folder: Path) -> SandboxBackend:
    if name == "docker":
        from sandbox.docker.backend import find as find_docker

        return find_docker(folder)
    from sandbox.bubblewrap.backend import find as find_bubblewrap

    return find_bubblewrap(folder)


@functools.cache
def _backend(name: str, folder: Path) -> SandboxBackend:
    if name == "docker":
        from sandbox.docker.backend import docker_backend

        return docker_backend(folder)
    from sandbox.bubblewrap.backend import bubblewrap_backend

    return bubblewrap_backend(folder)
