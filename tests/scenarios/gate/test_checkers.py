"""The gate on checkers that can be cheated or are flaky, and on sound ones."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from curation.scenarios.gate.findings import findings_of
from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import ShellTask
from sandbox.choose import choose_backend
from sandbox.gate.checker_tests import BundleSubject
from sandbox.gate.gate import run_gate
from sandbox.gate.play import Reference
from sandbox.gate.report import CHECKER, GateVerdict
from sandbox.protocol import Fixture, SandboxBackend, Setup
from tests.scenarios.gate import cases
from tests.scenarios.gate.answer_cases import LENIENT, SOUND_ANSWERS
from tests.scenarios.gate.attack_cases import ATTACKED, SOUND_ATTACKED
from tests.scenarios.gate.cases import Case
from tests.scenarios.gate.fresh_cases import FRESH_BAD, FRESH_SOUND
from tests.scenarios.gate.measure_cases import COMPARED, MEASURED
from tests.scenarios.gate.neighbour_cases import DAMAGED, SOUND_BESIDE

# These had the wrong verdict when they were first tried.
WRONG_FIRST = {
    *("sorted letters", "a private file in any way", "one member of the archive", "links by their inside"),
    *("a link that resolves", "touched today", "numbers of the inode", "a name for find", "a copy that may be there"),
    *("a copy that is not made twice", "paths with colons in the text"),
    *("no difference is printed", "nearly that mean", "zeros behind a half", "rounded up or down"),
    *("a mark of the first check", "a mark that nobody makes", "a mark in the home", "a mark where it goes"),
    *("between quotes of python", "between quotes of a here document", "between quotes of awk"),
}
SOUND = (*cases.SOUND, *COMPARED, *SOUND_ATTACKED, *SOUND_ANSWERS, *SOUND_BESIDE, *FRESH_SOUND)
BAD = (*cases.BAD, *MEASURED, *ATTACKED, *LENIENT, *DAMAGED, *FRESH_BAD)
SHARED = Path(__file__).resolve().parents[4] / "shared" / "cases" / "checkers.jsonl"
GIVEN = [json.loads(line) for line in SHARED.read_text().splitlines()] if SHARED.exists() else []


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        # Its sessions are slow, and the same as bubblewrap's by the tests of the sandbox.
        pytest.param("docker", marks=(pytest.mark.docker, pytest.mark.slow)),
    ],
)
def rooms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SandboxBackend:
    return choose_backend(request.param, folder=tmp_path_factory.mktemp("sandbox"))


def gated(case: Case, rooms: SandboxBackend, *, scratch: tuple[str, ...] = ()) -> GateVerdict:
    findings = findings_of(case.checker, case.reference.text, case.task.setup)
    return run_gate(
        task=case.task,
        reference=case.reference,
        subject=BundleSubject(told="Work is announced by: todo", scratch=scratch, findings=tuple(findings)),
        open_session=rooms.session,
        repeats=1,
    )


def named(name: str) -> Case:
    return next(case for case in (*SOUND, *BAD) if case.name == name)


def wrong_verdicts(cases: Sequence[Case], rooms: SandboxBackend) -> dict[str, str]:
    """Sound checkers that are refused, others that are admitted, or refused for another reason than their cheat."""
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda case: gated(case, rooms), cases))
    return {
        case.name: verdict.reason or "admitted"
        for case, verdict in zip(cases, verdicts, strict=True)
        if verdict.admitted != (case in SOUND)
        or case.names not in verdict.reason
        or verdict.reason == "the checker fails after the reference solution"
    }


@pytest.mark.timeout(900)
def test_sound_checkers_are_admitted_and_others_refused(rooms: SandboxBackend) -> None:
    """Some of each kind; the long test has all."""
    first = [
        case for case in (*ATTACKED, *FRESH_BAD, *FRESH_SOUND, *LENIENT, *SOUND_ANSWERS) if case.name in WRONG_FIRST
    ]
    assert wrong_verdicts((*SOUND[::96], *BAD[::96], *first[::4]), rooms) == {}


@pytest.mark.timeout(900)
@pytest.mark.skipif(not GIVEN, reason="no ../shared/cases/checkers.jsonl")
@pytest.mark.parametrize("each", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_the_shared_checkers_get_the_right_verdict(rooms: SandboxBackend, each: int) -> None:
    given = GIVEN[::each]
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda row: gated_as_given(row, rooms), given))
    wrong = {
        row["name"]: verdict.reason or "admitted"
        for row, verdict in zip(given, verdicts, strict=True)
        if verdict.admitted != (row["label"] == "sound")
    }
    assert wrong == {}


def gated_as_given(given: dict[str, Any], rooms: SandboxBackend) -> GateVerdict:
    files = [Fixture(file["path"], file["content"].encode(), int(file["mode"], 8)) for file in given["fixtures"]]
    setup = Setup(fixtures=files, motd="Work is announced by: todo\n")
    *commands, ending = given["reference_solution"].strip().splitlines()
    return run_gate(
        task=ShellTask(setup, given["checker"], ending),
        reference=Reference(tuple(commands), Ending(ending)),
        subject=BundleSubject(told=setup.motd),
        open_session=rooms.session,
        repeats=1,
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_sound_checkers_are_admitted_and_all_others_refused(rooms: SandboxBackend) -> None:
    assert wrong_verdicts((*SOUND, *BAD), rooms) == {}


CONDITIONS = {
    "[ $PANIC_REASON = missing ]": False,
    'eval "[ \\"$PANIC_REASON\\" = missing ]"': False,
    'echo missing | grep -q "$PANIC_REASON"': False,
    '[ "$PANIC_REASON" = missing ]': True,
    '[ "$(echo "$PANIC_REASON" | wc -w)" -ge 1 ]': True,
}


def test_a_checker_that_executes_the_reason_of_a_panic_is_refused(rooms: SandboxBackend) -> None:
    def verdict_on(condition: str) -> GateVerdict:
        checker = f'[ "$TERMINAL" = panic ] && asked todo show 1 && unchanged --except /var && {condition}'
        return gated(Case("reason", "cat /var/lib/todo/1", checker, ending=Ending("panic", "missing")), rooms)

    with ThreadPoolExecutor(4) as threads:
        verdicts = dict(zip(CONDITIONS, threads.map(verdict_on, CONDITIONS), strict=True))
    assert {condition: verdict.admitted for condition, verdict in verdicts.items()} == CONDITIONS
    assert all(one.admitted or one.reason.startswith("the reason as code") for one in verdicts.values())


def test_the_report_shows_the_attempt_that_got_in_with_its_terminal(rooms: SandboxBackend) -> None:
    verdict = gated(named("one of two results"), rooms)
    check = next(check for check in verdict.checks if not check.passed)
    assert check.name == "cheats on /home/agent/o.txt"
    assert check.reason.startswith("the checker passes with /home/agent/o.txt removed.")
    *reference, attempt, ending, checker = check.transcript
    assert reference[0].command == "todo --help" and "usage: todo" in reference[0].output
    assert (attempt.command, attempt.exit_code) == ("rm -rf -- /home/agent/o.txt\n", 0)
    assert (ending.command, checker.command, checker.exit_code) == ("exit", CHECKER, 0)
    assert checker.seconds > 0


def test_a_scratch_path_may_be_anything_and_the_report_says_so(rooms: SandboxBackend) -> None:
    verdict = gated(named("one of two results"), rooms, scratch=("/home/agent/o.txt",))
    assert verdict.admitted, verdict.reason
    shown = next(check for check in verdict.checks if check.name == "what the reference changed")
    assert "# left alone, scratch: /home/agent/o.txt" in [line.command for line in shown.transcript]
    assert "# left alone, the provider's trace: /var/log/todo.log" in [line.command for line in shown.transcript]
