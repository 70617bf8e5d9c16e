"""What each way of making sessions needs on this machine, by trying: also of the one that is not chosen."""

import functools
from collections.abc import Sequence
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.protocol import Backend, Finding

BACKENDS = ("docker", "bubblewrap")
SESSION = "session"


def findings_of(name: str, *, folder: Path) -> Sequence[Finding]:
    """The findings of `docker` or `bubblewrap`; `folder` as in `choose`."""
    try:
        return _backend(name, folder).findings()
    except SandboxUnavailable as missing:
        return [Finding(name, False, str(missing))]


def works(findings: Sequence[Finding]) -> bool:
    """Whether a session was opened and used. What else is missing makes it weaker, and is said."""
    return any(finding.name == SESSION and finding.works for finding in findings)


@functools.cache
def _backend(name: str, folder: Path) -> Backend:
    # Imported when asked for: Docker's SDK alone costs a tenth of a second.
    if name == "docker":
        from sandbox.docker.backend import docker_backend

        return docker_backend(folder)
    from sandbox.bubblewrap.backend import bubblewrap_backend

    return bubblewrap_backend(folder)
