"""Records on disk of who owns which sandbox, so that any worker can remove those of a dead one."""

import functools
import json
import os
import select
import signal
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sandbox.protocol import Labels

_GONE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process, told from later ones with the same number by `began`, in the kernel's clock ticks."""

    pid: int
    began: int

    def is_alive(self) -> bool:
        return _began(self.pid) == self.began

    def kill(self) -> bool:
        """Kill it and wait for its end; False if it was gone."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(_GONE_SECONDS * 1000)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class SandboxRecord:
    """One sandbox. `maker` is the process that opened it, `process` bubblewrap's. That is None if the maker was killed
    before it was recorded; the sandbox ended with it."""

    name: str
    maker: Process
    process: Process | None = None
    labels: dict[str, str] = field(default_factory=dict)

    def is_owned(self, is_alive: Callable[[Labels], bool]) -> bool:
        """Whether its maker is alive, and the owner named by its labels, if it has any."""
        return self.maker.is_alive() and (not self.labels or is_alive(self.labels))

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()


class Records:
    """The records in one folder, a small file each. The file's name has the id of its maker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, process: int, labels: Labels) -> None:
        said = {"process": asdict(Process(process, _began(process))), "labels": dict(labels)}
        (self._folder / f"{name}.json").write_text(json.dumps(said))

    def forget(self, name: str) -> None:
        (self._folder / f"{name}.json").unlink(missing_ok=True)

    def all(self) -> Iterator[SandboxRecord]:
        """The records of this PID namespace; which processes of another one are alive cannot be seen here."""
        for path in self._folder.glob("*.json"):
            maker = maker_of(path.stem)
            if maker is None:
                continue
            try:
                said = json.loads(path.read_text())
            except FileNotFoundError:
                continue
            except json.JSONDecodeError:
                yield SandboxRecord(path.stem, maker)
            else:
                yield SandboxRecord(path.stem, maker, Process(**said["process"]), said["labels"])


def new_name() -> str:
    """Return a session's name with the id of its maker: a control group has a maker even without a record."""
    own = this_process()
    return f"{own.pid}-{own.began}-{_space()}-{uuid.uuid4().hex[:8]}"


def maker_of(name: str) -> Process | None:
    """The process in the name; None for other names and for another PID namespace."""
    match name.split("-"):
        case [pid, began, space, _] if pid.isdecimal() and began.isdecimal() and space == _space():
            return Process(int(pid), int(began))
    return None


def this_process() -> Process:
    return _process(os.getpid())


@functools.cache
def _process(pid: int) -> Process:
    """Cached by number, because a forked worker is another process."""
    return Process(pid, _began(pid))


def _began(pid: int) -> int:
    """When it began; -1 if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return -1 if fields[0] in {"Z", "X"} else int(fields[19])


@functools.cache
def _space() -> str:
    """The number of this process's PID namespace."""
    return str(Path("/proc/self/ns/pid").stat().st_ino)
