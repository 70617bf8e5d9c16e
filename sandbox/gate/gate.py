"""The reference gate: a scenario is admitted if it cannot be passed without work and its reference solves it.

Each check runs in a fresh session. The checker must fail on untouched fixtures, on a bare `exit`, on a bare `panic`, on
the reference's own claim without its work, on a full disk and on links under the names that it writes. The reference
must end as expected and pass, and pass again. Then the checker itself is tested (`checker_tests`): it must see the
reference's changes, and the same state must get the same verdict.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import OpenSession, ShellTask
from sandbox.errors import SetupRefused
from sandbox.gate.checker_tests import BundleSubject, checker_tests
from sandbox.gate.play import HANGS, Checkpoint, PlayedSession, Reference, Rooms
from sandbox.gate.report import Check, GateVerdict
from sandbox.gate.state import StateChange
from sandbox.protocol import HOME, TEMPORARY

FULL = f"for d in {HOME} {' '.join(TEMPORARY)}; do cat /dev/zero > $d/zq-fill; done 2>/dev/null"
LINKED = f"{HOME}/zq-one"


def run_gate(
    *,
    task: ShellTask,
    reference: Reference,
    open_session: OpenSession,
    repeats: int,
    subject: BundleSubject = BundleSubject(),  # noqa: B008 - frozen
    checkpoint: Checkpoint = lambda: None,
) -> GateVerdict:
    """All checks that are possible always run, so that a report shows everything to fix.

    The checker is tested if the reference passes. `checkpoint` is called before every session and may raise to stop
    the gate. Raises `SandboxFailed` if a check broke
    `MAX_SANDBOXES` sandboxes: then nothing is known about the scenario.
    """
    rooms = Rooms(task, open_session, checkpoint)
    checks = list(_checks(rooms, reference, repeats))
    changes: Mapping[str, StateChange] | None = None
    if not all(check.passed for check in checks):
        checks += [finding.check for finding in subject.findings]
    else:
        try:
            found, changes = checker_tests(rooms, reference, subject)
            checks += found
        except SetupRefused as refused:
            checks.append(Check("experiments", False, f"the sandbox does not take the scenario: {refused}"))
    return GateVerdict.of(checks, changes)


def _checks(rooms: Rooms, reference: Reference, repeats: int) -> Iterator[Check]:
    yield rooms.play(ending=None).must_fail("untouched", "the checker passes on the untouched fixtures")
    for ending in (Ending("exit"), Ending("panic")):
        name = f"bare {ending.terminal}"
        reason = f"the checker passes when all that was done is `{ending.line}`"
        yield rooms.play(ending=ending).must_fail(name, reason)
    if reference.ending.reason:
        claim = "the checker passes on the reference's last line alone: it believes what is claimed"
        yield rooms.play(ending=reference.ending).must_fail("claim", claim)
    task = rooms.task
    solved = rooms.play(commands=reference.commands, ending=reference.ending)
    first = _must_solve("reference", solved, task)
    yield first if first.passed or not reference.lost else replace(first, reason=f"{first.reason}. {reference.lost}")
    if first.passed:
        yield from _without_results(rooms, reference.ending, solved.check.written if solved.check else ())
        for number in range(1, repeats + 1):
            played = rooms.play(commands=reference.commands, ending=reference.ending)
            again = _must_solve(f"repeat {number}", played, task)
            flaky = f"flaky, it passed before and fails now: {again.reason}"
            yield again if again.passed else Check(again.name, False, flaky, again.transcript)


def _without_results(rooms: Rooms, ending: Ending, written: Sequence[str]) -> Iterator[Check]:
    """An agent that only fills all folders, or links the paths that the checker wrote after the reference."""
    scripts = {"full disk": (FULL, "every folder is full")}
    if written:
        planted = "\n".join(f"ln -s {LINKED} {shlex.quote(path)} 2>/dev/null" for path in written)
        scripts["planted links"] = (planted, "the files that it writes are links to one file")
    for name, (script, state) in scripts.items():
        reason = f"the checker passes when nothing was done and {state}. Let it fail if it cannot write."
        yield rooms.play(before=[script], ending=ending).must_fail(name, reason)


def _must_solve(name: str, played: PlayedSession, task: ShellTask) -> Check:
    reason = played.stopped
    if not reason and played.ending and played.ending.terminal != task.expected_terminal:
        reason = f"the reference ends in {played.ending.terminal}, {task.expected_terminal} is expected"
    if not reason and not played.passed:
        reason = HANGS if played.hangs else "the checker fails after the reference solution"
    return Check(name, not reason, reason, tuple(played.lines))
