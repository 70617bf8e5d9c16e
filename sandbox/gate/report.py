"""The gate's report: every check with its terminal."""

from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.gate.state import StateChange

CHECKER = "(the checker)"
MAX_OUTPUT = 16 * 1024
MAX_COMMAND = 8 * 1024


@dataclass(frozen=True, slots=True)
class ReportLine:
    """A command of a check as a terminal shows it, and its time. `exit_code` is None for a terminal."""

    command: str
    output: str = ""
    exit_code: int | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, object]:
        return {
            "command": _shortened(self.command, MAX_COMMAND),
            "output": _shortened(self.output, MAX_OUTPUT),
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 4),
        }


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the gate; `reason` says why it failed. A check that passed with a reason is a warning."""

    name: str
    passed: bool
    reason: str = ""
    transcript: tuple[ReportLine, ...] = ()

    def as_json(self) -> dict[str, object]:
        lines = [line.as_json() for line in self.transcript]
        return {"name": self.name, "passed": self.passed, "reason": self.reason, "transcript": lines}


@dataclass(frozen=True, slots=True)
class GateFinding:
    """A failed check of the texts. It does not count if `path` turns out to be the reference's result."""

    check: Check
    path: str = ""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The result of the gate. `reason` is that of the first failed check, empty for an admitted scenario.

    `changes`: the reference's changes that count as its result. None if the reference failed or no state was seen.
    """

    admitted: bool
    reason: str
    checks: tuple[Check, ...]
    changes: Mapping[str, StateChange] | None = None

    @classmethod
    def of(cls, checks: list[Check], changes: Mapping[str, StateChange] | None = None) -> "GateVerdict":
        failed = next((check for check in checks if not check.passed), None)
        reason = f"{failed.name}: {failed.reason}" if failed else ""
        return cls(failed is None, reason, tuple(checks), changes)


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[… {len(text) - most} characters left out …]\n{text[-most // 2 :]}"
