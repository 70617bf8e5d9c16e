"""What this machine lets sessions stand on: found out once per process, by trying."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sandbox.bubblewrap.cgroups import Cgroups, find_cgroups
from sandbox.bubblewrap.command import Programs, as_agent, etc_files, find_programs


@dataclass(frozen=True, slots=True)
class Ground:
    """What this machine lets a session stand on, found out once per process.

    `root`: the root folder that was built, None for the host's /usr. `drop`: the server is root and agents get a user
    id of their own. `files` are open files that each session reads anew.
    """

    programs: Programs
    cgroups: Cgroups | None
    root: Path | None
    drop: bool
    files: dict[str, int]


def find_ground(folder: Path) -> Ground:
    programs = find_programs()
    root = folder / "rootfs"
    files = etc_files() if not root.is_dir() else {}
    return Ground(
        programs=programs,
        cgroups=find_cgroups(),
        root=root.resolve() if root.is_dir() else None,
        drop=os.geteuid() == 0 and _may_drop(programs),
        files={path: _kept(path, content) for path, content in files.items()},
    )


def _may_drop(programs: Programs) -> bool:
    """Whether a user that is not root may make namespaces here."""
    trial = [*as_agent(programs, drop=True), programs.bwrap, "--unshare-all", "--ro-bind", "/", "/", "/bin/true"]
    if trial[0] == programs.bwrap:
        return False
    return subprocess.run(trial, capture_output=True, timeout=20, check=False).returncode == 0  # noqa: S603 - ours


def _kept(name: str, content: bytes) -> int:
    """A file in memory that stays open with this process."""
    number = os.memfd_create(name.replace("/", "-"))
    os.write(number, content)
    return number
