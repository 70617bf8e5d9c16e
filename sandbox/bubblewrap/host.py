"""The machine's features for sessions, tried once per process."""

import os
import re
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sandbox.bubblewrap.cgroups import Cgroups, find_cgroups
from sandbox.bubblewrap.command import HOST_UID, Programs, as_agent, find_programs
from sandbox.errors import SandboxUnavailable


@dataclass(frozen=True, slots=True)
class Host:
    """The machine's features for a session.

    `root` is the built root folder, None for the host's /usr. `drop`: the server is root, and agents get their own user
    id. `counts`: RLIMIT_NPROC counts the processes of one sandbox (Linux 5.14), not all of its user.
    """

    programs: Programs
    cgroups: Cgroups | None
    root: Path | None
    drop: bool
    counts: bool


def find_host(folder: Path) -> Host:
    """Raises `SandboxUnavailable` without bubblewrap, or if agents could not reach the built root."""
    programs = find_programs()
    root = (folder / "rootfs").resolve() if (folder / "rootfs").is_dir() else None
    drop = os.geteuid() == 0 and _may_drop(programs)
    if root is not None and drop:
        _must_be_reachable(root)
    return Host(
        programs=programs,
        cgroups=find_cgroups(),
        root=root,
        drop=drop,
        counts=_kernel() >= (5, 14),
    )


def _must_be_reachable(root: Path) -> None:
    closed = [str(place) for place in (root, *root.parents) if not place.stat().st_mode & stat.S_IXOTH]
    if closed:
        raise SandboxUnavailable(
            f"Agents are user {HOST_UID} here and cannot reach the root at {root}: `chmod o+x {' '.join(closed)}`,"
            " or put WINNOW_DATA in a folder that every user can enter."
        )


def _may_drop(programs: Programs) -> bool:
    """Whether a user other than root may make namespaces here."""
    trial = [*as_agent(programs, drop=True), programs.bwrap, "--unshare-all", "--ro-bind", "/", "/", "/bin/true"]
    if trial[0] == programs.bwrap:
        return False
    return subprocess.run(trial, capture_output=True, timeout=20, check=False).returncode == 0  # noqa: S603 - ours


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
