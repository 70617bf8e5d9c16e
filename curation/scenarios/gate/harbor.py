"""Gate a Harbor task: its trials are run by Harbor's command with this worker's Docker."""

import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from curation.scenarios.gate.findings import finding_at, findings_of
from curation.scenarios.gate.result import BundleGateResult
from curation.scenarios.models import ScenarioStatus
from curation.web.problems import Problem
from sandbox.errors import SandboxUnavailable
from sandbox.gate.report import GateFinding
from sandbox.harbor.command import Harbor
from sandbox.harbor.gate import run_harbor_gate
from sandbox.harbor.task_folder import SOLUTION, TESTS, TaskFolder
from sandbox.harbor.trials import LocalRunner, Runner
from sandbox.protocol import Setup

BACKEND = "harbor"
TRIALS_AT_ONCE = 2
# Trials of one scenario: two of the oracle and two of `nop`, the scan of the attempts, two that write the reward.
TRIALS = 7
# A tests' script may use these without being wrong: Harbor's verifiers install programs, and look for services.
_ONLY_WARNINGS = ("the network", "the process table", "the machine's name")
_PYTHON = {
    "the clock": re.compile(r"^[^#\n]*\b(?:datetime|date)\.(?:now|today|utcnow)\(", re.MULTILINE),
    "random numbers": re.compile(r"^[^#\n]*(?:\brandom\.\w+\(|\bsecrets\.\w|\buuid4\(|\burandom\()", re.MULTILINE),
    "the network": re.compile(r"^[^#\n]*\b(?:requests|httpx|urllib\.request|urlopen)\b[.(]", re.MULTILINE),
}
# A machine of two cores runs the trials of one task at a time.
_turn = threading.Semaphore(1)


class NoHarbor(Problem):
    """The operator has set no command of Harbor, or it does not work."""

    status = 409
    title = "No Harbor"
    code = "harbor_missing"


def harbor_command() -> Harbor:
    """Return Harbor's command. Raises `NoHarbor`."""
    try:
        return Harbor.of(settings.HARBOR_COMMAND)
    except SandboxUnavailable as missing:
        raise NoHarbor(f"Harbor tasks are gated by Harbor's command. {missing} Set HARBOR_COMMAND.") from None


def require_harbor() -> None:
    """Raise `NoHarbor` if no command is set. Whether it works is known on the worker."""
    if not settings.HARBOR_COMMAND:
        raise NoHarbor("Harbor tasks are gated by Harbor's command. This server has none: set HARBOR_COMMAND.")


def local_runner(folder: Path, checkpoint: Callable[[], None]) -> Runner:
    return LocalRunner(harbor_command(), folder, TRIALS_AT_ONCE, checkpoint)


@contextmanager
def one_at_a_time(checkpoint: Callable[[], None]) -> Iterator[tuple[Runner, Path]]:
    """Wait until no other task of this process has trials, and yield a runner and its scratch folder."""
    with _turn, tempfile.TemporaryDirectory(prefix="winnow-gate-", ignore_cleanup_errors=True) as name:
        checkpoint()
        yield local_runner(Path(name), checkpoint), Path(name)


def gate_task(task: TaskFolder, *, repeats: int, checkpoint: Callable[[], None]) -> BundleGateResult:
    """Gate a task. Raises `NoHarbor`, and `SandboxError` if there is no verdict."""
    with one_at_a_time(checkpoint) as (runner, folder):
        verdict = run_harbor_gate(task=task, runner=runner, folder=folder, repeats=repeats, findings=findings_in(task))
    status = ScenarioStatus.ADMITTED if verdict.admitted else ScenarioStatus.REJECTED
    return BundleGateResult(status, verdict.reason, verdict.checks, BACKEND)


def findings_in(task: TaskFolder) -> list[GateFinding]:
    """The inputs of the tests beside the state, such as the clock, in scripts of the shell and of Python.

    Python's are warnings, since tests wait, or make inputs for the agent's program. But if the reference reads the
    clock too, then so does the result, which is another one tomorrow.
    """
    solved = "\n".join(file.text or "" for file in task.below(SOLUTION).values())
    reads = [finding.check.name for finding in [*findings_of(solved, "", Setup()), *_in_python("", solved)]]
    warned = _ONLY_WARNINGS if any(name.endswith("the clock") for name in reads) else (*_ONLY_WARNINGS, "the clock")
    found = []
    for path, file in task.below(TESTS).items():
        text = file.text or ""
        if path.endswith(".sh"):
            found += [_named(path, finding, _ONLY_WARNINGS) for finding in findings_of(text, "", Setup())]
        elif path.endswith(".py"):
            found += [_named(path, finding, (*warned, "random numbers")) for finding in _in_python(path, text)]
    return found


def _in_python(path: str, text: str) -> Iterator[GateFinding]:
    for what, pattern in _PYTHON.items():
        if match := pattern.search(text):
            line = text.count("\n", 0, match.end()) + 1
            yield finding_at(f"the checker reads {what}", "checker", text, line, match[0])


def _named(path: str, finding: GateFinding, warned: Sequence[str]) -> GateFinding:
    check = finding.check
    is_warning = any(check.name.endswith(words) for words in warned)
    reason = check.reason.replace("of the checker", f"of {path}")
    reason = f"warning: {reason}" if is_warning else reason
    return GateFinding(replace(check, name=f"{path}: {check.name}", passed=is_warning, reason=reason))
