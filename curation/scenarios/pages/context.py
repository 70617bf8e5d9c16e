"""The contexts of the pages of a scenario and its gate reports; all texts of the bundle are escaped."""

from collections.abc import Mapping, Sequence
from typing import Any

from curation.scenarios.bundles.document import Announcement, Bundle, FixtureFile, Program, Provider, announced_env
from curation.scenarios.claims.check import checked_axes
from curation.scenarios.claims.evidence import ClaimFinding
from curation.scenarios.models import GateReport, Scenario, ScenarioStatus
from curation.scenarios.pages.harbor import fixture_view
from curation.web.text.markup import code_html, render_output, visible, with_signs, without_colours
from curation.web.text.transcript import StepFact, TerminalStep, TurnPiece
from sandbox.gate.report import CHECKER

ANNOUNCED = {
    "motd": "message of the day, /etc/motd",
    "banner": "login banner, /etc/issue",
    "file": "file /home/agent/NOTICE",
}


def scenario_view(row: Scenario) -> dict[str, object]:
    """Needs `with_bundle()`. The bundle is not validated, so that one from before a rule can be seen and repaired."""
    bundle = _unvalidated(row.text.bundle)
    return {
        "plain_name": with_signs(bundle.name),
        "name": visible(bundle.name),
        "title": visible(bundle.title),
        "author": visible(bundle.authored_by),
        "reason": visible(row.reason),
        "axes": tuple((axis, with_signs(str(value))) for axis, value in row.axes.items()),
        "announced": _announced(bundle),
        "announcement": render_output(bundle.announcement.text),
        "env": tuple((name, visible(value)) for name, value in bundle.env.items()),
        "provider": visible(bundle.provider.name),
        "doc": render_output(bundle.provider.doc) if bundle.provider.doc else None,
        "fixtures": tuple(fixture_view(file.path, file.mode, file.data()) for file in bundle.fixtures),
        "fixture_bytes": sum(len(file.data()) for file in bundle.fixtures),
        "tools": tuple((tool.name, visible(tool.description)) for tool in bundle.tools),
        "marks": (
            *((visible(path), "scratch: need not be exact") for path in bundle.scratch),
            *((visible(path), "lines in any order") for path in bundle.free_order),
        ),
        "reference": code_html(bundle.reference_solution),
        "checker": code_html(bundle.checker),
    }


def report_view(row: Scenario, report: GateReport) -> dict[str, object]:
    return {
        "plain_name": with_signs(row.name),
        "report": report,
        "verdict": ScenarioStatus(report.verdict),
        "reason": visible(report.reason),
        "current": report.bundle_sha256 == row.bundle_sha256,
        "checks": tuple(_check(check) for check in report.checks),
        "axes": _axes(report),
    }


def _axes(report: GateReport) -> tuple[dict[str, object], ...]:
    """The claimed values with the gate's findings. `cleared_by` is the person who says that a mismatch is right."""
    return tuple(
        {
            "axis": with_signs(check.axis),
            "value": with_signs(check.value),
            "finding": ClaimFinding(check.finding),
            "reason": visible(check.reason),
            "cleared_by": (check.cleared.by or "a deleted account") if check.cleared else "",
            "comment": visible(check.cleared.comment if check.cleared else ""),
            "is_open": check.finding == ClaimFinding.MISMATCH and check.cleared is None,
        }
        for check in checked_axes(report)
    )


def _unvalidated(document: Mapping[str, Any]) -> Bundle:
    return Bundle.model_construct(
        **{
            **document,
            "fixtures": [FixtureFile.model_construct(**file) for file in document.get("fixtures", [])],
            "announcement": Announcement.model_construct(**document["announcement"]),
            "provider": Provider.model_construct(**document.get("provider", {})),
            "tools": [Program.model_construct(**tool) for tool in document.get("tools", [])],
        }
    )


def _announced(bundle: Bundle) -> str:
    names = "".join(announced_env(bundle.announcement))
    return f"environment variable {names}" if names else ANNOUNCED[bundle.announcement.kind]


def _check(check: Mapping[str, Any]) -> dict[str, object]:
    steps: Sequence[Mapping[str, Any]] = check.get("transcript") or ()
    return {
        "name": with_signs(str(check["name"])),
        "passed": bool(check["passed"]),
        "warning": bool(check["passed"] and check.get("reason")),
        "reason": visible(str(check.get("reason") or "")),
        "steps": tuple(_step(number, step) for number, step in enumerate(steps, 1)),
    }


def _step(number: int, step: Mapping[str, Any]) -> TerminalStep:
    command, output = str(step.get("command") or ""), str(step.get("output") or "")
    code, seconds = step.get("exit_code"), step.get("seconds")
    is_checker = command == CHECKER
    facts = []
    if code is not None and (code or is_checker):
        # The verdict of the check says whether the checker's exit code is right.
        facts.append(StepFact(f"exit {code}", "" if is_checker else "bad"))
    if seconds is not None:
        facts.append(StepFact(f"{seconds:.2f}", unit="s"))
    return TerminalStep(
        number=number,
        command=None if is_checker else TurnPiece(number, code_html(command)),
        output=TurnPiece(number, visible(without_colours(output))) if output else None,
        prompt="$ ",
        note="the checker",
        facts=tuple(facts),
    )
