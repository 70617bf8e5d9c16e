"""Fresh sandboxes for the gate's checks, and their records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import OpenSession, ShellTask, exit_code_of
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.gate.report import CHECKER, Check, ReportLine
from sandbox.gate.state import SNAPSHOT_BYTES, Snapshot, read_snapshot, snapshot_command
from sandbox.protocol import CheckResult, ExecResult, Fixture, SandboxSession, Setup

MAX_SANDBOXES = 3
REFERENCE_SECONDS = 120.0
SNAPSHOT_SECONDS = 30.0
# More than a rollout's: the gate waits for its sandboxes alone, and a worker opens only some at once.
WEIGHT = 512
HANGS = "the checker does not end in time"
Checkpoint = Callable[[], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference solution: its commands run one by one, as an agent types them, then `ending` ends the session.

    `lost` names the variables, functions and aliases that one command sets for itself alone and a later one uses.
    """

    commands: tuple[str, ...]
    ending: Ending
    lost: str = ""

    @property
    def text(self) -> str:
        return "\n".join(self.commands)


@dataclass
class PlayedSession:
    """The result of one session: its lines, the checker's result, or why it stopped."""

    ending: Ending | None
    lines: list[ReportLine] = field(default_factory=list)
    check: CheckResult | None = None
    stopped: str = ""

    @property
    def passed(self) -> bool:
        return self.check is not None and self.check.passed

    @property
    def hangs(self) -> bool:
        return self.check is not None and self.check.timed_out

    def run(self, session: SandboxSession, script: str, seconds: float = REFERENCE_SECONDS) -> ExecResult:
        result = session.exec(script, seconds)
        self.lines.append(ReportLine(script, result.output, exit_code_of(result), result.duration))
        return result

    def solve(self, session: SandboxSession, commands: Sequence[str], seconds: float = REFERENCE_SECONDS) -> bool:
        """Run the reference's commands; True if one of them left early. Then the rest is not run."""
        for command in filter(str.strip, commands):
            result = self.run(session, command, seconds)
            if result.timed_out:
                self.stopped = f"the reference does not end within {seconds:g} s"
            elif result.left and result.exit_code != 0:
                self.stopped = f"the reference broke off with status {result.exit_code} before its last line"
            if self.stopped or result.left:
                return True
        return False

    def must_fail(self, name: str, reason: str) -> Check:
        """A check that fails, for this reason, if the checker passed. One that does not end has judged nothing, so that
        is a warning."""
        failed = self.stopped or (reason if self.passed else "")
        return Check(name, not failed, failed or (f"warning: {HANGS}" if self.hangs else ""), tuple(self.lines))


@dataclass(frozen=True)
class Rooms:
    """Opens fresh sandboxes for a task. `checkpoint` is called before each and may raise to stop the gate."""

    task: ShellTask
    open_session: OpenSession
    checkpoint: Checkpoint = lambda: None

    def fresh(self, work: Callable[[SandboxSession], T], *, setup: Setup | None = None) -> T:
        """Return `work(session)`; again in another sandbox if one broke. Raises `SandboxFailed`, `SetupRefused`."""
        opened, setup = 0, setup or self.task.setup
        setup = replace(setup, limits=replace(setup.limits, weight=WEIGHT))
        while True:
            self.checkpoint()
            opened += 1
            try:
                with self.open_session(setup) as session:
                    return work(session)
            except SandboxFailed:
                if opened == MAX_SANDBOXES:
                    raise

    def roomy(self, fixtures: Sequence[Fixture] | None = None) -> Setup:
        """The task's setup with room for snapshots in the output of a command."""
        setup = self.task.setup
        limits = replace(setup.limits, output=SNAPSHOT_BYTES)
        return replace(setup, limits=limits, fixtures=setup.fixtures if fixtures is None else fixtures)

    def play(
        self,
        *,
        commands: Sequence[str] = (),
        ending: Ending | None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> PlayedSession:
        """Run `before`, the reference's commands, `after`, the terminal and the checker in a fresh sandbox."""
        try:
            return self.fresh(lambda session: _play(session, self.task.checker, before, commands, after, ending))
        except SetupRefused as refused:
            return PlayedSession(ending, stopped=f"the sandbox does not take the scenario: {refused}")


def _play(
    session: SandboxSession,
    checker: str,
    before: Sequence[str],
    commands: Sequence[str],
    after: Sequence[str],
    ending: Ending | None,
) -> PlayedSession:
    played = PlayedSession(ending)
    for script in filter(str.strip, before):
        played.run(session, script)
    left = played.solve(session, commands)
    if played.stopped:
        return played
    if left:
        played.ending = Ending("exit")
    for script in filter(str.strip, after):
        played.run(session, script)
    if played.ending is not None:
        played.lines.append(ReportLine(played.ending.line))
    played.check = check_in(session, checker, played.ending)
    played.lines.append(checker_line(played.check))
    return played


def check_in(session: SandboxSession, checker: str, ending: Ending | None) -> CheckResult:
    terminal, reason = (ending.terminal, ending.reason) if ending else ("", "")
    return session.check(checker, terminal=terminal, panic_reason=reason)


def checker_line(check: CheckResult) -> ReportLine:
    return ReportLine(CHECKER, check.output, check.exit_code, check.duration)


def snapshot_in(session: SandboxSession) -> Snapshot:
    """The state while the agent's processes live."""
    return read_snapshot(session.exec(snapshot_command(), SNAPSHOT_SECONDS).output)


def snapshot_after(session: SandboxSession, checker: str) -> Snapshot:
    """Return the state that the checker sees: first the supervisor removes paths that the checker does not name."""
    return read_snapshot(run_as_checker(session, checker, snapshot_command()).output)


def run_as_checker(session: SandboxSession, checker: str, script: str) -> CheckResult:
    """Run a script of ours where the checker runs. It names the checker's paths, so that they stay."""
    return session.check(f"{script}\nexit\n{checker}", terminal="")
