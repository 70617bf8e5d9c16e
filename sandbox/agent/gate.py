"""The reference gate: a scenario is admitted if it cannot be passed without work and its reference solves it.

Each check runs in a fresh session. The checker must fail on untouched fixtures, on a bare `exit`, on a bare `panic` and
on the reference's own claim without its work. The reference must end as expected and pass, and pass again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import OpenSession, Task
from sandbox.agent.terminal import exit_code_of
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.protocol import CheckResult, Session

MAX_SANDBOXES = 3
REFERENCE_SECONDS = 120.0
CHECKER = "(the checker)"
Checkpoint = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Line:
    """A command of a check as a terminal shows it, and its time. `exit_code` is None for a terminal."""

    command: str
    output: str = ""
    exit_code: int | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, object]:
        return {
            "command": self.command,
            "output": self.output,
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 4),
        }


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the gate; `reason` says why it failed."""

    name: str
    passed: bool
    reason: str = ""
    transcript: tuple[Line, ...] = ()

    def as_json(self) -> dict[str, object]:
        lines = [line.as_json() for line in self.transcript]
        return {"name": self.name, "passed": self.passed, "reason": self.reason, "transcript": lines}


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The result of the gate. `reason` is that of the first failed check, empty for an admitted scenario."""

    admitted: bool
    reason: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference solution: `body` runs as one command, then `ending` ends the session."""

    body: str
    ending: Ending


@dataclass
class _Tried:
    """The result of one session: its lines, the checker's result, or why it stopped."""

    ending: Ending | None
    lines: list[Line] = field(default_factory=list)
    check: CheckResult | None = None
    stopped: str = ""

    @property
    def passed(self) -> bool:
        return self.check is not None and self.check.passed


def run_gate(
    *, task: Task, reference: Reference, open_session: OpenSession, repeats: int, checkpoint: Checkpoint = lambda: None
) -> GateVerdict:
    """All checks but the repeats always run, so that a report shows everything to fix.

    `checkpoint` is called before every session and may raise to stop the gate. Raises `SandboxFailed` if a check broke
    `MAX_SANDBOXES` sandboxes: then nothing is known about the scenario.
    """
    checks: list[Check] = []
    for check in _checks(task, reference, open_session, repeats, checkpoint):
        checks.append(check)
    failed = next((check for check in checks if not check.passed), None)
    return GateVerdict(failed is None, f"{failed.name}: {failed.reason}" if failed else "", tuple(checks))


def _checks(
    task: Task, reference: Reference, open_session: OpenSession, repeats: int, checkpoint: Checkpoint
) -> Iterator[Check]:
    def tried(body: str, ending: Ending | None) -> _Tried:
        return _in_fresh_session(task, open_session, body, ending, checkpoint)

    yield _must_fail("untouched", tried("", None), "the checker passes on the untouched fixtures")
    for ending in (Ending("exit"), Ending("panic")):
        name = f"bare {ending.terminal}"
        yield _must_fail(name, tried("", ending), f"the checker passes when all that was done is `{ending.line}`")
    if reference.ending.reason:
        claim = "the checker passes on the reference's last line alone: it believes what is claimed"
        yield _must_fail("claim", tried("", reference.ending), claim)
    first = _must_solve("reference", tried(reference.body, reference.ending), task)
    yield first
    if first.passed:
        for number in range(1, repeats + 1):
            again = _must_solve(f"repeat {number}", tried(reference.body, reference.ending), task)
            flaky = f"flaky, it passed before and fails now: {again.reason}"
            yield again if again.passed else Check(again.name, False, flaky, again.transcript)


def _must_fail(name: str, tried: _Tried, reason: str) -> Check:
    if tried.stopped:
        return Check(name, False, tried.stopped, tuple(tried.lines))
    return Check(name, not tried.passed, reason if tried.passed else "", tuple(tried.lines))


def _must_solve(name: str, tried: _Tried, task: Task) -> Check:
    reason = tried.stopped
    if not reason and tried.ending and tried.ending.terminal != task.expected_terminal:
        reason = f"the reference ends in {tried.ending.terminal}, {task.expected_terminal} is expected"
    if not reason and not tried.passed:
        hangs = tried.check is not None and tried.check.timed_out
        reason = "the checker does not end in time" if hangs else "the checker fails after the reference solution"
    return Check(name, not reason, reason, tuple(tried.lines))


def _in_fresh_session(
    task: Task, open_session: OpenSession, body: str, ending: Ending | None, checkpoint: Checkpoint
) -> _Tried:
    """Run `body`, the terminal and the checker in a new session; again in another one if the sandbox broke."""
    opened = 0
    while True:
        checkpoint()
        opened += 1
        try:
            with open_session(task.setup) as session:
                return _play(session, task, body, ending)
        except SetupRefused as refused:
            return _Tried(ending, stopped=f"the sandbox does not take the scenario: {refused}")
        except SandboxFailed:
            if opened == MAX_SANDBOXES:
                raise


def _play(session: Session, task: Task, body: str, ending: Ending | None) -> _Tried:
    tried = _Tried(ending)
    if body.strip():
        result = session.exec(body, REFERENCE_SECONDS)
        tried.lines.append(Line(body, result.output, exit_code_of(result), result.duration))
        if result.timed_out:
            tried.stopped = f"the reference does not end within {REFERENCE_SECONDS:g} s"
        elif result.left and result.exit_code != 0:
            tried.stopped = f"the reference broke off with status {result.exit_code} before its last line"
        elif result.left:
            tried.ending = Ending("exit")
    if tried.stopped:
        return tried
    if tried.ending is not None:
        tried.lines.append(Line(tried.ending.line))
    terminal, reason = (tried.ending.terminal, tried.ending.reason) if tried.ending else ("", "")
    tried.check = session.check(task.checker, terminal=terminal, panic_reason=reason)
    tried.lines.append(Line(CHECKER, tried.check.output, tried.check.exit_code, tried.check.duration))
    return tried
