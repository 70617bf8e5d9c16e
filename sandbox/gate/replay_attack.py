"""Play an attack that the checker rewarded again, beside the reference, and compare the states after both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import exit_code_of
from sandbox.gate.checker_tests import BundleSubject, base_of
from sandbox.gate.play import REFERENCE_SECONDS, Reference, Rooms, check_in, checker_line, snapshot_in
from sandbox.gate.report import ReportLine
from sandbox.gate.state import Changes, PathEntry, State, StateChange
from sandbox.protocol import CheckResult, SandboxSession

MAX_NAMED = 4


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack that is rewarded each time. `undone` says what of the task it has not done; empty if it did the task.
    `lines` is its terminal."""

    undone: str
    lines: tuple[ReportLine, ...]


class _Seen(NamedTuple):
    before: State
    after: State
    check: CheckResult
    lines: list[ReportLine]


def replay_attack(
    rooms: Rooms, reference: Reference, subject: BundleSubject, commands: Sequence[str], ending: Ending
) -> Attack | None:
    """None if the attack is not rewarded again. Raises `SandboxFailed`, `SetupRefused`."""
    tried = rooms.fresh(lambda session: _seen(session, rooms.task.checker, commands, ending), setup=rooms.roomy())
    if not tried.check.passed:
        return None
    right = rooms.fresh(
        lambda session: _seen(session, rooms.task.checker, reference.commands, reference.ending), setup=rooms.roomy()
    )
    changes = base_of(rooms, reference, subject, right.before, right.after).changes
    return Attack(_undone(changes, tried, right), tuple(tried.lines))


def _seen(session: SandboxSession, checker: str, commands: Sequence[str], ending: Ending) -> _Seen:
    before, lines = snapshot_in(session).paths, []
    for command in commands:
        result = session.exec(command, REFERENCE_SECONDS)
        lines.append(ReportLine(command, result.output, exit_code_of(result), result.duration))
    after = snapshot_in(session).paths
    check = check_in(session, checker, ending)
    return _Seen(before, after, check, [*lines, ReportLine(ending.line), checker_line(check)])


def _undone(changes: Changes, tried: _Seen, right: _Seen) -> str:
    """Where the reference changes nothing, the work is to run the scenario's programs."""
    wrong = [path for path, change in changes.items() if not _is_done(change, tried.after.get(path))]
    if wrong:
        more = f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
        are = "are not as the reference leaves them" if len(wrong) > 1 else "is not as the reference leaves it"
        return f"the checker passes, but {', '.join(wrong[:MAX_NAMED])}{more} {are}"
    if changes or tried.check.runs is None or right.check.runs is None:
        return ""
    ran, needed = ({(run.path, run.arguments) for run in seen.check.runs or ()} for seen in (tried, right))
    return "" if ran & needed or not needed else "the checker passes, but no program of the scenario was asked"


def _is_done(change: StateChange, entry: PathEntry | None) -> bool:
    """Neither blanks nor the order of lines count, nor the content of an archive or another file that is not text."""
    before, after = change.before, change.after
    if entry is None or after is None:
        return entry is after
    if before is not None and before.mode != after.mode and entry.mode != after.mode:
        return False
    if entry.kind == after.kind == "file" and after.text is None:
        return entry.data != b""
    if entry.text is not None and after.text is not None:
        return _lines(entry.text) == _lines(after.text)
    return after.same_content(entry)


def _lines(text: str) -> list[str]:
    return sorted(filter(None, ("".join(line.split()) for line in text.splitlines())))
