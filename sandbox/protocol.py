"""The sandbox as its users see it: plain data in, frozen results out, and the protocols of sessions and backends.

Nothing here names an image, a mount or a privilege: those come from the machine's settings, never from a scenario.
Calls block; to drive many sessions at once, give each its own thread.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

USER = "agent"
HOME = "/home/agent"
# The folders for fixtures. An agent may write to them, each is a small tmpfs; the rest of the root is read-only.
ROOTS = (HOME, "/srv", "/opt", "/usr/local", "/var")
# Folders for temporary files. Files that an agent leaves in them do not stand in a checker's way.
TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108
MEBIBYTE = 1024 * 1024
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fixture:
    """A file that exists before the first command. `path` is absolute and inside one of `ROOTS`."""

    path: str
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The limits of one session. `disk` limits all files that it writes; sizes in bytes, times in seconds.

    `weight` is the session's part of the processors when they are short, where other work has 1024; in bubblewrap.
    """

    memory: int = 256 * MEBIBYTE
    pids: int = 128
    cpus: float = 1.0
    weight: int = 128  # many sessions have one worker, which gets more than any of them
    disk: int = 64 * MEBIBYTE
    output: int = 64 * 1024
    command_seconds: float = 20.0
    check_seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Setup:
    """The contents of a new session. `motd` and `banner` become `/etc/motd` and `/etc/issue`.

    `labels` (`run`, `item`, `lease`) say who owns it, so that it can be found when its worker is dead.
    """

    fixtures: Sequence[Fixture] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    motd: str = ""
    banner: str = ""
    limits: SessionLimits = SessionLimits()
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecResult:
    """One command as a terminal would show it.

    `output` is stdout and stderr in order, decoded as UTF-8 (other bytes become U+FFFD, NUL bytes are dropped) and cut
    in the middle if it is longer than the limit (`truncated`). `exit_code` is the shell's, 128 + n for signal n.
    `timed_out`: it was killed with all its children. `left`: its shell ended before the end of the command (`exit`,
    `exec`, `set -e`, a syntax error). `duration` is in seconds.
    """

    output: str
    exit_code: int
    duration: float
    truncated: bool = False
    timed_out: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A program of the scenario that was executed: the path of its fixture, its arguments and its process id."""

    path: str
    arguments: tuple[str, ...] = ()
    pid: int = 0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The checker's result on the state that the agent left. A checker that times out has not passed.

    `runs` are the scenario's programs that were executed before the checker, in order, as the supervisor recorded them;
    None if the kernel does not let it. `written` are the paths that the checker wrote, but for those in `$TMPDIR`.
    """

    passed: bool
    exit_code: int
    output: str
    duration: float
    timed_out: bool = False
    runs: tuple[ProgramRun, ...] | None = None
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateDigest:
    """A state between two commands. `pid` is a process id: programs with a lower one ran before. Two states are the
    same if `sha256` is: files, links and folders with their contents and modes, the working directory, variables, and
    the number of running processes."""

    pid: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PathEdit:
    """A path as it is to be: a `file`, a `folder`, a `link`, or nothing if `kind` is empty.

    The content of a file, or the target of a link, is each piece as often as its number says, cut at `size` bytes.
    """

    path: str
    kind: str = ""
    mode: int = 0
    pieces: tuple[tuple[bytes, int], ...] = ()
    size: int = 0


class SandboxSession(Protocol):
    """One fresh sandbox, from opening to removal. If any call raises `SandboxFailed`, try again in a new session."""

    def exec(self, command: str, timeout: float | None = None) -> ExecResult:
        """Run `command` in its own `/bin/sh` with empty stdin.

        The working directory, exported variables and background processes carry over to the next command; a timeout
        ends background processes. `timeout` is in seconds, `limits.command_seconds` by default.
        """

    def cwd(self) -> str:
        """The directory that the next command starts in."""

    def check(self, checker: str, *, terminal: str, panic_reason: str = "") -> CheckResult:
        """Kill every process of the agent, then run the checker. No command can follow, but other checks can.

        The checker has its own environment, with `TERMINAL` (`exit`, `panic` or empty) and `PANIC_REASON`, and the
        commands `asked` and `unchanged` (asked.pl).
        """

    def edit(self, edits: Sequence[PathEdit]) -> None:
        """Make these edits of the agent's files, one after the other, between two checks. No program runs for it.

        Missing folders are made, closed ones are entered, and a file that is there keeps its inode. An edit that the
        file system refuses is left out.
        """

    def close(self) -> None:
        """Remove the sandbox with everything in it; may be called again."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


# The finding that a session was opened and used.
SESSION = "session"


@dataclass(frozen=True, slots=True)
class BackendFinding:
    """One thing that a backend needs: whether it is there, and if not, how to get it."""

    name: str
    works: bool
    detail: str
    remedy: str = ""


class SandboxBackend(Protocol):
    """A way to make sessions. `name` is its value in `SANDBOX`."""

    name: str

    def session(self, setup: Setup) -> SandboxSession:
        """Open a fresh session, ready for its first command; raises `SandboxFailed` or `SetupRefused`."""

    def findings(self) -> Sequence[BackendFinding]:
        """Try the backend on this machine, and return its parts, present or missing."""

    def reap(self, is_alive: Callable[[Labels], bool]) -> int:
        """Remove the sandboxes whose owner, named by their labels, is not alive; return how many."""
