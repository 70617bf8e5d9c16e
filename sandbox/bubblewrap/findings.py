"""What bubblewrap needs and has on this machine, for `manage.py sandbox check` and the system page."""

import subprocess
import time
from pathlib import Path
from typing import Protocol

from sandbox.bubblewrap.cgroups import CONTROLLERS
from sandbox.bubblewrap.command import HOST_UID
from sandbox.bubblewrap.host import Host
from sandbox.errors import SandboxError
from sandbox.protocol import SESSION, BackendFinding, SandboxSession, Setup

NAMESPACES = (
    "Allow unprivileged user namespaces: `sysctl kernel.unprivileged_userns_clone=1`, and where AppArmor restricts "
    "them `sysctl kernel.apparmor_restrict_unprivileged_userns=0`."
)
DELEGATE = "Run the worker as a systemd service with `Delegate=yes`, or as root: it needs to make control groups."


class Opens(Protocol):
    def session(self, setup: Setup) -> SandboxSession: ...


def findings_of(backend: Opens, host: Host) -> list[BackendFinding]:
    return [_program(host), _session(backend), _user(host), *_bounds(host), _root(host)]


def _program(host: Host) -> BackendFinding:
    said = subprocess.run([host.programs.bwrap, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    return BackendFinding("bubblewrap", said.returncode == 0, said.stdout.strip(), "Install bubblewrap 0.8 or later.")


def _session(backend: Opens) -> BackendFinding:
    began = time.monotonic()
    try:
        with backend.session(Setup()) as session:
            passed = session.check('test "$(id -un)" = agent', terminal="exit").passed
    except SandboxError as failure:
        return BackendFinding(SESSION, False, str(failure), NAMESPACES)
    took = time.monotonic() - began
    said = f"{took:.1f} s" if took >= 1 else f"{1000 * took:.0f} ms"
    return BackendFinding(SESSION, passed, f"opened, checked and removed in {said}", NAMESPACES)


def _user(host: Host) -> BackendFinding:
    if host.drop:
        return BackendFinding("user", True, f"agents run as user {HOST_UID} of this machine")
    if Path("/proc/self").stat().st_uid:
        return BackendFinding("user", True, "agents run as the worker's user, without any capability")
    detail = "agents run as root of this machine, without any capability and in their own namespaces"
    return BackendFinding("user", False, detail, f"Install chroot (coreutils). {NAMESPACES}")


def _bounds(host: Host) -> list[BackendFinding]:
    bounded = set(host.cgroups.parents) if host.cgroups else set()
    weaker = {
        "memory": "by rlimit only: for each process, not for the session as a whole",
        "pids": "by rlimit" if host.counts else "no limit: this kernel counts a user's processes over all sandboxes",
        "cpu": "no limit: a session may use all processors",
    }
    version = host.cgroups.version if host.cgroups else 0
    return [
        BackendFinding(f"limit of {name}", name in bounded, f"control group, version {version}")
        if name in bounded
        else BackendFinding(f"limit of {name}", name == "pids" and host.counts, weaker[name], DELEGATE)
        for name in CONTROLLERS
    ]


def _root(host: Host) -> BackendFinding:
    if host.root is not None:
        return BackendFinding("root", True, f"the root built at {host.root}")
    shell = Path("/bin/sh").resolve().name
    detail = f"this machine's own /usr, read-only, with {shell} as /bin/sh"
    return BackendFinding(
        "root", shell == "dash", detail, "`manage.py sandbox build --rootfs FILE` builds a separate root."
    )
