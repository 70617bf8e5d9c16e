"""Replay: a recorded trajectory's commands in a fresh session, and whether they show and come to the same."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import OpenSession, Task
from sandbox.agent.terminal import exit_code_of, orientation, prompt_of, shown
from sandbox.errors import SandboxFailed
from sandbox.protocol import Session

MOST_SANDBOXES = 3
# What a clock says differs from run to run: listings show when the sandbox was made.
_CLOCK = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +)?"
    r"(?:\d{4}-\d\d-\d\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2})?"
    r"[ T]*\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: *(?:[+-]\d{4}|Z|UTC))?(?: +\d{4}\b)?"
    r"|\d{4}-\d\d-\d\d"
)
Turn = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Difference:
    """`turn` is the index into the recorded turns; `what`: orientation, output, exit code, checker."""

    turn: int
    what: str
    recorded: str
    replayed: str

    def as_json(self) -> dict[str, object]:
        return {"turn": self.turn, "what": self.what, "recorded": self.recorded, "replayed": self.replayed}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trajectory as it was recorded: `ending` None where no terminal was reached, `checker_passed` None where the
    checker did not run; then it does not run now."""

    turns: Sequence[Turn]
    ending: Ending | None
    checker_passed: bool | None


@dataclass(frozen=True, slots=True)
class ReplayVerdict:
    differences: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        return not self.differences


def run_replay(
    *,
    task: Task,
    recorded: Recorded,
    open_session: OpenSession,
    command_seconds: float,
    go_on: Callable[[], None] = lambda: None,
) -> ReplayVerdict:
    """Every difference, in the order of the turns. Readings of a clock are no difference.

    `go_on` is called before every turn and may raise to stop. Raises `SandboxFailed` where `MOST_SANDBOXES` sandboxes
    broke, `SetupRefused` where the scenario is not taken.
    """
    opened = 0
    while True:
        opened += 1
        try:
            with open_session(task.setup) as session:
                return ReplayVerdict(tuple(_play(session, task, recorded, command_seconds, go_on)))
        except SandboxFailed:
            if opened == MOST_SANDBOXES:
                raise


def _play(
    session: Session, task: Task, recorded: Recorded, command_seconds: float, go_on: Callable[[], None]
) -> list[Difference]:
    found: list[Difference] = []
    command = ""
    for index, turn in enumerate(recorded.turns):
        go_on()
        if turn["kind"] == "action":
            command = str(turn["text"])
        elif turn["kind"] == "orientation":
            prompt = prompt_of(session.cwd())
            text = orientation(banner=task.setup.banner, motd=task.setup.motd, prompt=prompt)
            found += _differ(index, "orientation", str(turn["text"]), text)
        else:
            result = session.exec(command, command_seconds)
            found += _differ(index, "output", str(turn["text"]), shown(result, prompt_of(session.cwd())))
            found += _differ(index, "exit code", str(turn["exit_code"]), str(exit_code_of(result)))
    if recorded.checker_passed is not None:
        terminal, reason = (recorded.ending.terminal, recorded.ending.reason) if recorded.ending else ("", "")
        passed = session.check(task.checker, terminal=terminal, panic_reason=reason).passed
        found += _differ(len(recorded.turns) - 1, "checker", _word(recorded.checker_passed), _word(passed))
    return found


def _differ(turn: int, what: str, recorded: str, replayed: str) -> list[Difference]:
    if recorded == replayed or without_clock(recorded) == without_clock(replayed):
        return []
    return [Difference(turn, what, recorded, replayed)]


def without_clock(text: str) -> str:
    """The text with dates and times of day masked."""
    return _CLOCK.sub("<time>", text)


def _word(passed: bool) -> str:
    return "passed" if passed else "failed"
