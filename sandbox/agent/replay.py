"""Replay: the commands of a recorded trajectory in a fresh session, and what differs."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import OpenSession, ShellTask, exit_code_of, orientation, prompt_of, screen_text
from sandbox.errors import SandboxFailed
from sandbox.protocol import ProgramRun, SandboxSession, StateDigest

MAX_SANDBOXES = 3
# Times differ between runs: listings show when the sandbox was made.
_CLOCK = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +)?"
    r"(?:\d{4}-\d\d-\d\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2})?"
    r"[ T]*\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: *(?:[+-]\d{4}|Z|UTC))?(?: +\d{4}\b)?"
    r"|\d{4}-\d\d-\d\d"
)
Turn = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """`turn` is the index of the recorded turn; `what` is orientation, output, exit code or checker."""

    turn: int
    what: str
    recorded: str
    replayed: str

    def as_json(self) -> dict[str, object]:
        return {"turn": self.turn, "what": self.what, "recorded": self.recorded, "replayed": self.replayed}


@dataclass(frozen=True, slots=True)
class RecordedTrajectory:
    """A recorded trajectory. `ending` is None if no terminal was reached. `checker_passed` is None if the checker did
    not run; then it does not run in the replay."""

    turns: Sequence[Turn]
    ending: Ending | None
    checker_passed: bool | None


@dataclass(frozen=True, slots=True)
class ReplayVerdict:
    """`states` are those after each orientation and output, if they were asked for; `runs` are the programs that were
    executed, None if that is not known."""

    differences: tuple[ReplayDifference, ...]
    states: tuple[StateDigest, ...] = ()
    runs: tuple[ProgramRun, ...] | None = None

    @property
    def agrees(self) -> bool:
        return not self.differences


def run_replay(
    *,
    task: ShellTask,
    recorded: RecordedTrajectory,
    open_session: OpenSession,
    command_seconds: float,
    checkpoint: Callable[[], None] = lambda: None,
    digest: Callable[[SandboxSession], StateDigest] | None = None,
) -> ReplayVerdict:
    """Return every difference, in the order of the turns. Dates and times are ignored.

    `digest` reads the state between two commands. `checkpoint` is called before every turn and may raise to stop.
    Raises `SandboxFailed` if `MAX_SANDBOXES` sandboxes broke, `SetupRefused` if the scenario is refused.
    """
    opened = 0
    while True:
        opened += 1
        try:
            with open_session(task.setup) as session:
                return _play(session, task, recorded, command_seconds, checkpoint, digest)
        except SandboxFailed:
            if opened == MAX_SANDBOXES:
                raise


def _play(
    session: SandboxSession,
    task: ShellTask,
    recorded: RecordedTrajectory,
    command_seconds: float,
    checkpoint: Callable[[], None],
    digest: Callable[[SandboxSession], StateDigest] | None,
) -> ReplayVerdict:
    found: list[ReplayDifference] = []
    states: list[StateDigest] = []
    runs: tuple[ProgramRun, ...] | None = None
    command = ""
    for index, turn in enumerate(recorded.turns):
        checkpoint()
        if turn["kind"] == "action":
            command = str(turn["text"])
            continue
        if turn["kind"] == "orientation":
            prompt = prompt_of(session.cwd())
            text = orientation(banner=task.setup.banner, motd=task.setup.motd, prompt=prompt)
            found += _differ(index, "orientation", str(turn["text"]), text)
        else:
            result = session.exec(command, command_seconds)
            found += _differ(index, "output", str(turn["text"]), screen_text(result, prompt_of(session.cwd())))
            found += _differ(index, "exit code", str(turn["exit_code"]), str(exit_code_of(result)))
        if digest is not None:
            states.append(digest(session))
    if recorded.checker_passed is not None:
        terminal, reason = (recorded.ending.terminal, recorded.ending.reason) if recorded.ending else ("", "")
        check = session.check(task.checker, terminal=terminal, panic_reason=reason)
        runs = check.runs
        found += _differ(len(recorded.turns) - 1, "checker", _word(recorded.checker_passed), _word(check.passed))
    return ReplayVerdict(tuple(found), tuple(states), runs)


def _differ(turn: int, what: str, recorded: str, replayed: str) -> list[ReplayDifference]:
    return [] if is_same_screen(recorded, replayed) else [ReplayDifference(turn, what, recorded, replayed)]


def is_same_screen(recorded: str, replayed: str) -> bool:
    return recorded == replayed or without_clock(recorded) == without_clock(replayed)


def without_clock(text: str) -> str:
    """Return the text with dates and times masked."""
    return _CLOCK.sub("<time>", text)


def _word(passed: bool) -> str:
    return "passed" if passed else "failed"
