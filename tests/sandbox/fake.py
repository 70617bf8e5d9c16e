"""A sandbox without a machine: sessions that reply from a script, behind the protocols of `sandbox.protocol`.

    backend = FakeBackend({"ls": "NOTICE\n", "cat nothing": ran("cat: nothing: No such file\n", exit_code=1)})
    backend = FakeBackend(lambda session, command: "ok\n", passes=lambda session: session.terminal == "exit")

Unknown commands are answered as by a shell that lacks the program (127). An error in the place of an answer is raised,
so that a dying sandbox is `SandboxFailed("went away")`. `cd` works as in a shell that has every folder. All commands
stay readable: `backend.sessions[0].commands`.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from sandbox.errors import SandboxFailed
from sandbox.gate.state import digest_command, snapshot_command
from sandbox.protocol import HOME, BackendFinding, CheckResult, ExecResult, Labels, PathEdit, SandboxSession, Setup


def ran(output: str = "", exit_code: int = 0, *, timed_out: bool = False, left: bool = False) -> ExecResult:
    """The result of a command that took a hundredth of a second."""
    return ExecResult(output=output, exit_code=exit_code, duration=0.01, timed_out=timed_out, left=left)


# The fake has no files.
EMPTY_STATE = "processes 0\n"
Answer = str | ExecResult | Exception
Answers = Mapping[str, Answer] | Callable[["FakeSession", str], Answer]


@dataclass
class FakeSession:
    """One scripted session. `terminal`, `panic_reason` and `checker` are what `check` was called with. A checker of
    which `passes` says None does not end."""

    setup: Setup
    answers: Answers
    passes: "Callable[[FakeSession], bool | None]"
    commands: list[str] = field(default_factory=list)
    folder: str = HOME
    terminal: str = ""
    panic_reason: str = ""
    checker: str | None = None
    written: tuple[str, ...] = ()
    closed: bool = False

    def exec(self, command: str, timeout: float | None = None) -> ExecResult:
        self._must_live()
        if self.checker is not None:
            raise SandboxFailed("the session is over")
        if command == snapshot_command():
            return ran(EMPTY_STATE)
        if command == digest_command():
            return ran(f"{len(self.commands)} {hashlib.sha256(self.state().encode()).hexdigest()}  -\n")
        self.commands.append(command)
        answer = self._answer(command)
        if isinstance(answer, Exception):
            raise answer
        return ran(answer) if isinstance(answer, str) else answer

    def state(self) -> str:
        """What commands with a `>` have left behind."""
        return "\n".join([self.folder, *(command for command in self.commands if ">" in command)])

    def cwd(self) -> str:
        return self.folder

    def check(self, checker: str, *, terminal: str, panic_reason: str = "") -> CheckResult:
        self._must_live()
        if checker.startswith(snapshot_command()):
            return CheckResult(True, 0, EMPTY_STATE, 0.01)
        self.checker, self.terminal, self.panic_reason = checker, terminal, panic_reason
        passed = self.passes(self)
        code = 0 if passed else 1
        return CheckResult(bool(passed), code, "", 0.01, timed_out=passed is None, written=self.written)

    def edit(self, edits: Sequence[PathEdit]) -> None:
        self._must_live()

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, command: str) -> Answer:
        if callable(self.answers):
            return self.answers(self, command)
        if command in self.answers:
            return self.answers[command]
        if command.startswith("cd /"):
            self.folder = command.removeprefix("cd ").strip()
            return ""
        name = command.split(maxsplit=1)[0] if command.split() else command
        return ran(f"sh: 1: {name}: not found\n", exit_code=127)

    def _must_live(self) -> None:
        if self.closed:
            raise SandboxFailed("the session is over")


@dataclass
class FakeBackend:
    """Makes scripted sessions. The first openings raise the errors in `opening`, in turn."""

    answers: Answers = field(default_factory=dict)
    passes: Callable[[FakeSession], bool | None] = lambda session: True
    opening: Sequence[Exception | None] = ()
    written: tuple[str, ...] = ()
    name: str = "fake"
    sessions: list[FakeSession] = field(default_factory=list)
    reaped: list[Labels] = field(default_factory=list)
    opened: int = 0

    def session(self, setup: Setup) -> SandboxSession:
        self.opened += 1
        error = self.opening[self.opened - 1] if self.opened <= len(self.opening) else None
        if error is not None:
            raise error
        session = FakeSession(setup=setup, answers=self.answers, passes=self.passes, written=self.written)
        self.sessions.append(session)
        return session

    def findings(self) -> Sequence[BackendFinding]:
        return [BackendFinding("fake", True, "answers from a script")]

    def reap(self, is_alive: Callable[[Labels], bool]) -> int:
        dead = [session for session in self.sessions if not session.closed and not is_alive(session.setup.labels)]
        for session in dead:
            self.reaped.append(session.setup.labels)
            session.close()
        return len(dead)
