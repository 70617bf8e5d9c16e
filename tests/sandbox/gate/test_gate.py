from collections.abc import Callable

import pytest

from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import ShellTask
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.gate.gate import run_gate
from sandbox.gate.play import Reference
from sandbox.gate.report import CHECKER, GateVerdict, ReportLine
from sandbox.protocol import Setup
from tests.sandbox.fake import Answer, FakeBackend, FakeSession, ran

Passes = Callable[[FakeSession], bool | None]
EXIT = Ending("exit")
WORK = "todo > /dev/null\necho hello > greeting.txt"


def worked(session: FakeSession) -> bool:
    """A checker of the state: it wants the work, and nobody's word."""
    return WORK in session.commands


def gate(
    passes: Passes = worked,
    *,
    answers: Callable[[FakeSession, str], Answer] = lambda session, command: "",
    body: str = WORK,
    ending: Ending = EXIT,
    expected: str = "exit",
    repeats: int = 2,
    opening: tuple[Exception | None, ...] = (),
) -> tuple[GateVerdict, FakeBackend]:
    rooms = FakeBackend(answers, passes=passes, opening=opening)
    verdict = run_gate(
        task=ShellTask(Setup(), "test -e greeting.txt", expected),
        reference=Reference((body,), ending),
        open_session=rooms.session,
        repeats=repeats,
    )
    assert all(session.closed for session in rooms.sessions)
    return verdict, rooms


def names(verdict: GateVerdict) -> list[str]:
    return [check.name for check in verdict.checks]


def test_a_scenario_that_takes_work_and_is_solved_by_its_reference_is_admitted() -> None:
    verdict, rooms = gate()
    assert (verdict.admitted, verdict.reason) == (True, "")
    assert names(verdict) == [
        *("untouched", "bare exit", "bare panic", "reference", "full disk", "repeat 1", "repeat 2"),
        *(
            "what the reference changed",
            "same state, same verdict",
            "pretences on untouched fixtures",
            "claims in words",
        ),
    ]
    assert [session.terminal for session in rooms.sessions[:7]] == ["", "exit", "panic", *["exit"] * 4]
    assert verdict.checks[3].transcript == (
        ReportLine(WORK, "", 0, 0.01),
        ReportLine("exit"),
        ReportLine(CHECKER, "", 0, 0.01),
    )


def test_its_sandboxes_get_more_of_busy_processors_than_those_of_rollouts() -> None:
    _, rooms = gate()
    assert {session.setup.limits.weight for session in rooms.sessions} == {4 * Setup().limits.weight}


@pytest.mark.parametrize(
    ("passes", "refused"),
    [
        (lambda session: True, "untouched: the checker passes on the untouched fixtures"),
        (lambda session: session.terminal == "exit", "bare exit: the checker passes when all that was done is `exit`"),
        (
            lambda session: worked(session) or session.terminal == "panic",
            "bare panic: the checker passes when all that was done is `panic`",
        ),
        (lambda session: False, "reference: the checker fails after the reference solution"),
    ],
)
def test_what_the_gate_refuses(passes: Passes, refused: str) -> None:
    verdict, _ = gate(passes)
    assert (verdict.admitted, verdict.reason) == (False, refused)


def test_a_checker_that_waits_for_the_work_is_admitted_with_warnings() -> None:
    verdict, _ = gate(lambda session: worked(session) or None)
    assert verdict.admitted
    warned = [check.name for check in verdict.checks if check.reason == "warning: the checker does not end in time"]
    assert warned == ["untouched", "bare exit", "bare panic", "full disk", "claims in words"]


def test_a_checker_that_believes_a_claim_is_refused() -> None:
    ending = Ending("panic", "no such host")
    verdict, rooms = gate(lambda session: session.panic_reason == "no such host", ending=ending, expected="panic")
    assert verdict.reason.startswith("claim: the checker passes on the reference's last line alone")
    assert rooms.sessions[3].commands == []


def test_a_flaky_reference_is_refused() -> None:
    solved: list[FakeSession] = []

    def now_and_then(session: FakeSession) -> bool:
        if worked(session):
            solved.append(session)
        return worked(session) and len(solved) < 3

    verdict, _ = gate(now_and_then)
    assert verdict.reason == (
        "repeat 2: flaky, it passed before and fails now: the checker fails after the reference solution"
    )
    assert [check.passed for check in verdict.checks] == [True] * 6 + [False]


def test_all_checks_but_the_repeats_are_made_whatever_the_others_say() -> None:
    verdict, _ = gate(lambda session: not worked(session))
    assert names(verdict) == ["untouched", "bare exit", "bare panic", "reference"]
    assert [check.passed for check in verdict.checks] == [False] * 4
    assert verdict.reason.startswith("untouched")


@pytest.mark.parametrize(
    ("result", "expected", "refused"),
    [
        (ran("oops\n", 3, left=True), "exit", "the reference broke off with status 3 before its last line"),
        (ran("", 0, timed_out=True), "exit", "the reference does not end within"),
        (ran("", 0, left=True), "panic", "the reference ends in exit, panic is expected"),
    ],
)
def test_a_reference_must_come_to_its_end(result: Answer, expected: str, refused: str) -> None:
    verdict, _ = gate(answers=lambda session, command: result, ending=Ending(expected), expected=expected)
    assert verdict.reason.startswith(f"reference: {refused}")


def test_a_reference_may_leave_early_with_status_0() -> None:
    verdict, rooms = gate(answers=lambda session, command: ran(left=True))
    assert verdict.admitted
    assert rooms.sessions[3].terminal == "exit"


def test_a_reference_that_ends_otherwise_than_expected_is_refused() -> None:
    verdict, _ = gate(ending=Ending("panic"), expected="exit")
    assert verdict.reason == "reference: the reference ends in panic, exit is expected"


def test_what_the_sandbox_does_not_take_is_the_scenarios_fault() -> None:
    verdict, _ = gate(opening=(SetupRefused("/etc/passwd lies outside"),) * 10)
    assert verdict.reason == "untouched: the sandbox does not take the scenario: /etc/passwd lies outside"


def test_a_sandbox_that_breaks_is_nobodys_fault() -> None:
    verdict, rooms = gate(opening=(SandboxFailed("no room"), SandboxFailed("no room")))
    assert verdict.admitted
    assert rooms.opened == 13
    with pytest.raises(SandboxFailed, match="no room"):
        gate(opening=(SandboxFailed("no room"),) * 3)


def test_a_checker_that_a_full_disk_or_a_link_lets_pass_is_refused() -> None:
    def passes(session: FakeSession) -> bool:
        return worked(session) or any("zq-" in command for command in session.commands)

    rooms = FakeBackend(lambda session, command: "", passes=passes, written=("/home/agent/got", "/tmp/want"))  # noqa: S108
    task, reference = (
        ShellTask(Setup(), "sort greeting.txt > ~/got; cmp ~/got /srv/want", "exit"),
        Reference((WORK,), EXIT),
    )
    verdict = run_gate(task=task, reference=reference, open_session=rooms.session, repeats=0)
    refused = {check.name: check.reason for check in verdict.checks if not check.passed}
    assert refused["full disk"].startswith("the checker passes when nothing was done and every folder is full.")
    assert "links to one file" in refused["planted links"]
    assert any("ln -s /home/agent/zq-one /home/agent/got" in "\n".join(one.commands) for one in rooms.sessions)
