"""The machine's features for sessions, and the command line that starts their template."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.bubblewrap.cgroups import Cgroups, find_cgroups
from sandbox.errors import SandboxUnavailable
from sandbox.setup import BANNER, HOSTNAME, MOTD, SHARES, UID

# The host's user for agents if the server is root: no package and no login uses it, so it owns nothing here.
HOST_UID = 60999
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# What shell.pl starts a shell with; Docker's image has them in /usr/lib/shell.
SHELL_LINKS = {"sh": "/proc/self/fd/8", "bin/sh": "/proc/self/fd/9"}
ETC = Path(__file__).parents[1] / "docker" / "etc"


@dataclass(frozen=True, slots=True)
class Programs:
    bwrap: str
    chroot: str | None


def find_programs() -> Programs:
    """Raises `SandboxUnavailable` if bubblewrap is not installed."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxUnavailable("bubblewrap is not installed: `apt install bubblewrap` (or dnf, pacman).")
    return Programs(bwrap=bwrap, chroot=shutil.which("chroot"))


def as_agent(programs: Programs, *, drop: bool) -> list[str]:
    """The words that run the sandbox as another user of the host, if the server is root and `drop` is set.

    `chroot` to the same root changes nothing but the user, and starts twice as fast as `setpriv`.
    """
    if not drop or programs.chroot is None:
        return []
    return [programs.chroot, f"--userspec=+{HOST_UID}:+{HOST_UID}", "--groups=", "/"]


def sandboxing(programs: Programs, *, root: Path | None, files: Mapping[str, int]) -> list[str]:
    """Return the bubblewrap command, with the files and folders that every session can see.

    `root` is a built root folder, or None for the host's own /usr with an /etc of `files` (path in the sandbox to open
    file). The template keeps one capability over its own mounts; each session drops all when it starts.
    """
    line = [programs.bwrap, "--unshare-all", "--unshare-user", "--uid", str(UID), "--gid", str(UID)]
    line += ["--hostname", HOSTNAME, "--as-pid-1", "--new-session", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"]
    line += ["--ro-bind", str(root), "/"] if root else _hosts_root()
    line += ["--proc", "/proc", *_devices()]
    for path, number in files.items():
        line += ["--perms", "0644", "--file", str(number), path]
    if root is None:  # a built root has these folders
        line += [word for path in SHARES for word in ("--dir", path)]
    return [*line, *(["--remount-ro", "/"] if root is None else []), "--chdir", "/", "--"]


def etc_files() -> dict[str, bytes]:
    """The files of /etc beside the host's /usr: names for user ids, nothing from the host."""
    return {
        "/etc/passwd": (ETC / "passwd").read_bytes(),
        "/etc/group": (ETC / "group").read_bytes(),
        "/etc/hostname": f"{HOSTNAME}\n".encode(),
        "/etc/hosts": f"127.0.0.1 localhost {HOSTNAME}\n".encode(),
        "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
        "/etc/shells": b"/bin/sh\n",
    }


def _devices() -> list[str]:
    """bubblewrap's own --dev would need a second user namespace, for terminals that are not used here."""
    line = ["--tmpfs", "/dev"]
    for name in DEVICES:
        line += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
        line += ["--symlink", f"/proc/self/fd{target}", f"/dev/{name}"]
    for link, target in SHELL_LINKS.items():
        line += ["--symlink", target, f"/dev/shell/{link}"]
    return [*line, "--remount-ro", "/dev"]


def _hosts_root() -> list[str]:
    line = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            line += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    # /usr needs these two: links in /usr/bin lead through the first, the loader reads the second.
    line += ["--perms", "0755", "--dir", "/etc"]
    for shared in ("/etc/alternatives", "/etc/ld.so.cache"):
        line += ["--ro-bind-try", shared, shared]
    return [*line, "--symlink", MOTD, "/etc/motd", "--symlink", BANNER, "/etc/issue"]


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
