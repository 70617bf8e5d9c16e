"""Control groups, which limit a whole sandbox: version 2 if it is delegated, else the writable version 1 controllers.
With neither, sessions only have rlimits."""

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxFailed
from sandbox.protocol import SessionLimits
from sandbox.setup import memory_bound

CONTROLLERS = ("memory", "pids", "cpu")
PREFIX = "winnow-"
_PERIOD = 100_000  # microseconds
_EMPTYING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Where the groups of sessions are made: the folder of each controller. Version 2 has one for all three."""

    version: int
    parents: Mapping[str, Path]

    def make(self, name: str, limits: SessionLimits) -> tuple[Path, ...]:
        """Make a group with these limits and return its folders; raises `SandboxFailed`."""
        made: list[Path] = []
        try:
            for folder in self.folders(name):
                folder.mkdir()
                made.append(folder)
            for controller, parent in self.parents.items():
                for file, value in _bounds(self.version, controller, limits):
                    _write(parent / f"{PREFIX}{name}" / file, value)
        except OSError as error:
            remove(made)
            raise SandboxFailed(f"No control group could be made: {error}") from None
        return tuple(made)

    def entrances(self, folders: Sequence[Path]) -> list[Path]:
        """The files that a process joins by writing 0. `tasks` moves one thread and does not stop the machine."""
        return [folder / ("tasks" if self.version == 1 else "cgroup.procs") for folder in folders]

    def counters(self, name: str) -> list[Path]:
        """The files that count kills for lack of memory, and processes that were refused."""
        memory = "memory.events" if self.version == 2 else "memory.oom_control"
        files = {"memory": memory, "pids": "pids.events"}
        return [self.parents[part] / f"{PREFIX}{name}" / file for part, file in files.items() if part in self.parents]

    def is_exhausted(self, name: str) -> bool:
        """Whether a process of the group was killed for lack of memory."""
        texts = [_read(path) for path in self.counters(name) if path.name.startswith("memory.")]
        return any(re.search(r"^oom_kill [1-9]", text, re.MULTILINE) for text in texts)

    def names(self) -> set[str]:
        """The names of all sessions' groups, dead ones included."""
        found = [path.name for parent in self.parents.values() for path in parent.glob(f"{PREFIX}*")]
        return {name.removeprefix(PREFIX) for name in found}

    def folders(self, name: str) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(parent / f"{PREFIX}{name}" for parent in self.parents.values()))


def remove(folders: Sequence[Path], *, patience: float = _EMPTYING_SECONDS) -> None:
    """Remove the folders of a group whose processes are ending; raises `SandboxFailed` after `patience` seconds."""
    deadline = time.monotonic() + patience
    for folder in folders:
        while True:
            try:
                folder.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise SandboxFailed(f"The control group {folder.name} cannot be removed: {error}") from None
                time.sleep(0.002)
            else:
                break


def find_cgroups() -> Cgroups | None:
    """Find where this process may make groups, by making one; None if nowhere."""
    for candidate in _candidates():
        with suppress(SandboxFailed):
            remove(candidate.make(f"trial-{os.getpid()}-{time.monotonic_ns()}", SessionLimits()))
            return candidate
    return None


def _candidates() -> Iterator[Cgroups]:
    own, mounts = _own_groups(), _mounts()
    if "" in own and "" in mounts:
        # The nearest parent folder whose children have the controllers. Our own cannot have any: this process is in it.
        place = mounts[""] / own[""]
        for folder in (place, *place.parents):
            if not folder.is_relative_to(mounts[""]):
                break
            given = _read(folder / "cgroup.subtree_control").split()
            there = [controller for controller in CONTROLLERS if controller in given]
            if {"memory", "pids"} <= set(there) and os.access(folder / "cgroup.procs", os.W_OK):
                yield Cgroups(2, dict.fromkeys(there, folder))
    parents = {}
    for controller in CONTROLLERS:
        if controller in own and controller in mounts:
            inner = mounts[controller] / own[controller]
            place = inner if inner.is_dir() else mounts[controller]
            if os.access(place, os.W_OK):
                parents[controller] = place
    if parents:
        yield Cgroups(1, parents)


def _own_groups() -> dict[str, str]:
    """The group of this process by controller (version 2: ""), without the leading slash."""
    own: dict[str, str] = {}
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, place = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), place.lstrip("/"))
    return own


def _mounts() -> dict[str, Path]:
    """Where each controller's hierarchy is mounted (version 2: "")."""
    found: dict[str, Path] = {}
    for line in _read(Path("/proc/self/mountinfo")).splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        names = {"cgroup": options.split(","), "cgroup2": [""]}.get(kind, [])
        for name in names:
            found.setdefault(name, Path(fields.split(" ")[4]))
    return found


def _bounds(version: int, controller: str, limits: SessionLimits) -> list[tuple[str, str]]:
    memory, quota = str(memory_bound(limits)), str(max(1000, int(limits.cpus * _PERIOD)))
    pids = str(limits.pids)
    if version == 2:
        return {
            "memory": [("memory.max", memory), ("memory.swap.max", "0")],
            "pids": [("pids.max", pids)],
            "cpu": [("cpu.max", f"{quota} {_PERIOD}"), ("cpu.weight", str(max(1, limits.weight * 100 // 1024)))],
        }[controller]
    return {
        "memory": [("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory)],
        "pids": [("pids.max", pids)],
        "cpu": [("cpu.cfs_period_us", str(_PERIOD)), ("cpu.cfs_quota_us", quota), ("cpu.shares", str(limits.weight))],
    }[controller]


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except FileNotFoundError:
        if "sw" not in path.name:  # kernels without swap accounting have no such file
            raise


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
