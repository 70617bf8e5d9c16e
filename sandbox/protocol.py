"""What a sandbox is to those who use it: plain data in, frozen results out, two protocols between.

Nothing here names an image, a mount or a privilege: those come from the machine's settings, never from a scenario.
Calls block; who drives many sessions at once gives each its thread.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

USER = "agent"
HOME = "/home/agent"
# The folders that an agent may write to, each a small tmpfs; all else of the root is read-only.
ROOTS = (HOME, "/srv", "/opt", "/usr/local", "/var")
MEBIBYTE = 1024 * 1024
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fixture:
    """A file that is there before the agent comes. `path` is absolute and below one of `ROOTS`."""

    path: str
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Limits:
    """What one session may use. `disk` bounds all that it writes; sizes in bytes, times in seconds."""

    memory: int = 256 * MEBIBYTE
    pids: int = 128
    cpus: float = 1.0
    disk: int = 64 * MEBIBYTE
    output: int = 64 * 1024
    command_seconds: float = 20.0
    check_seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Setup:
    """A session to be opened. `motd` and `banner` become `/etc/motd` and `/etc/issue`.

    `labels` say whose it is (`run`, `item`, `lease`), so that it can be found when its worker is dead.
    """

    fixtures: Sequence[Fixture] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    motd: str = ""
    banner: str = ""
    limits: Limits = Limits()
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecResult:
    """One command as a terminal would show it.

    `output` is stdout and stderr as they came, decoded as UTF-8 (what is none becomes U+FFFD, NUL bytes are dropped),
    cut in the middle when it was longer than the limit (`truncated`). `exit_code` is the shell's, 128 + n for signal
    n. `timed_out`: it was killed with all its children. `left`: its shell ended before the end of the command
    (`exit`, `exec`, `set -e`, a syntax error).
    `duration` in seconds.
    """

    output: str
    exit_code: int
    duration: float
    truncated: bool = False
    timed_out: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the checker said of the state that the agent left. A checker that hangs has not passed."""

    passed: bool
    exit_code: int
    output: str
    duration: float
    timed_out: bool = False


class Session(Protocol):
    """One fresh sandbox, from opening to removal. `SandboxFailed` from any call means: infra, take a new one."""

    def exec(self, command: str, timeout: float | None = None) -> ExecResult:
        """Runs `command` in `/bin/sh`, in a process of its own with empty stdin.

        Working directory and exported variables carry over to the next one; so do background processes, which a
        timeout ends. `timeout` in seconds, `limits.command_seconds` by default.
        """

    def cwd(self) -> str:
        """The directory that the next command begins in."""

    def check(self, checker: str, *, terminal: str, panic_reason: str = "") -> CheckResult:
        """Kills every process of the agent, then runs the checker against what is left; the session's last call.

        The checker sees `TERMINAL` (`exit`, `panic` or empty) and `PANIC_REASON`, in an environment of its own.
        """

    def close(self) -> None:
        """Removes the sandbox with all that is in it; may be called again."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


# The finding that a session was opened and used.
SESSION = "session"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a backend needs: whether it is there, and if not, how to get it."""

    name: str
    works: bool
    detail: str
    remedy: str = ""


class Backend(Protocol):
    """A way to make sessions. `name` is what `SANDBOX` calls it."""

    name: str

    def session(self, setup: Setup) -> Session:
        """A fresh session, ready for its first command; raises `SandboxFailed` or `SetupRefused`."""

    def findings(self) -> Sequence[Finding]:
        """What works here and what is missing, by trying."""

    def reap(self, is_alive: Callable[[Labels], bool]) -> int:
        """Removes the sandboxes whose labels nobody alive answers for; of how many."""
