"""A scenario as the REST API prints it: slim in lists, with its bundle and its gate report on its own."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.scenarios.bundles.harbor import stored_task
from curation.scenarios.claims.check import AxisCheckOut, checked_axes
from curation.scenarios.models import Family, GateReport, Scenario
from curation.scenarios.pages.measured import MeasuredOut, OperatorOut
from curation.scenarios.taxonomy.axes import Axis
from curation.web.schemas import Out, StrictModel

# Fields that the server adds to a bundle; a client may send them back.
ADDED = frozenset(
    {
        "id",
        "status",
        "reason",
        "not_run_here",
        "gate",
        "version",
        "bundle_sha256",
        "run",
        "group",
        "copies",
        "measured",
        "operators",
        "created_at",
        "updated_at",
    }
)


class CheckOut(Schema):
    """One attempt of the gate, and whether it ended as it must. `passed` is about the gate, not about the checker.

    A check that passed with a reason is a warning. The transcript of a failed one is the terminal of the attempt that
    got in.
    """

    name: str = Field(examples=["untouched"])
    passed: bool
    reason: str = ""
    transcript: list[dict[str, Any]] = []


class GateOut(Schema):
    """The newest report on the bundle as it is; `checks` only where the bundle's texts are given too."""

    verdict: str = Field(examples=["admitted"])
    reason: str
    backend: str | None = Field(None, examples=["bubblewrap"])
    run: str | None = None
    created_at: datetime | None = None
    checks: list[CheckOut] = []
    axes: list[AxisCheckOut] = Field([], description="Empty if the bundle was not admitted otherwise.")


class ClearAxesIn(StrictModel):
    """The axes whose mismatch is cleared, and why they are right."""

    axes: list[str] = Field(min_length=1, max_length=50, examples=[["doc_depth"]])
    comment: str = Field(min_length=1, max_length=500, examples=["Its help names topics that only the fifo answers."])


class ScenarioOut(Schema):
    """The bundle's keys and what became of it. Lists leave the texts out unless `full` is asked for."""

    id: str = Field(examples=["17"])
    name: str = Field(examples=["greeting"])
    title: str = Field(examples=["Leave a greeting"])
    family: str = Field(examples=["shell"], description="shell, or harbor for a Harbor task")
    axes: dict[str, str | int] = Field(examples=[{"task": "file-edit", "difficulty": 1}])
    fixtures: list[dict[str, Any]] = []
    env: dict[str, str] = {}
    announcement: dict[str, str] = {}
    provider: dict[str, str] = {}
    reference_solution: str = ""
    checker: str = ""
    expected_terminal: str = Field(examples=["exit"], description="Empty for a Harbor task.")
    files: list[dict[str, Any]] = Field([], description="Of a Harbor task.")
    source: str = Field("", description="The data set of a Harbor task.")
    not_run_here: list[str] = Field([], description="What a Harbor task needs that Docker here does not have.")
    scratch: list[str] = []
    free_order: list[str] = []
    authored_by: str
    seed: int | None
    status: str = Field(examples=["admitted"], description="draft, admitted, held, rejected or dry_run")
    reason: str = Field(description="Why the gate refused or held it.")
    gate: GateOut | None = Field(description="Null until the bundle as it is has been gated.")
    group: str | None = Field(description="The same for copies: scenarios that differ in names only.")
    copies: int = Field(description="Other scenarios of its group.")
    measured: MeasuredOut = Field(description="The measured difficulty, beside the claimed one in `axes`.")
    operators: list[OperatorOut] = Field([], description="The same by model; only of one scenario.")
    version: int = Field(examples=[1], description="Counts edits; the ETag.")
    bundle_sha256: str
    run: str | None = Field(description="The run that created it.")
    created_at: datetime
    updated_at: datetime


class AxisValueOut(Schema):
    value: str = Field(examples=["cleanup"])
    about: str


class AxisOut(Out):
    axis: str = Field(validation_alias="name", examples=["task"])
    about: str
    values: list[AxisValueOut]

    @staticmethod
    def resolve_values(axis: Axis) -> list[dict[str, str]]:
        return [{"value": value, "about": about} for value, about in axis.values.items()]


# Columns of a scenario that are in a response as they are.
_SAME = (
    *("name", "title", "family", "axes", "expected_terminal", "authored_by", "seed", "status", "reason"),
    *("version", "bundle_sha256", "created_at", "updated_at"),
)


def scenario_row(row: Scenario, copies: Mapping[int, int], measured: Mapping[int, MeasuredOut]) -> dict[str, object]:
    """The slim shape. `copies`: `Scenario.objects.copies_of`; `measured`: `measured_of`."""
    gated = row.status in ("admitted", "held", "rejected", "dry_run")
    return {
        **{name: getattr(row, name) for name in _SAME},
        "id": str(row.pk),
        "gate": {"verdict": row.status, "reason": row.reason} if gated else None,
        "group": None if row.group is None else str(row.group),
        "copies": copies.get(row.pk, 0),
        "measured": measured[row.pk],
        "run": None if row.run_id is None else str(row.run_id),
    }


def scenario_out(
    row: Scenario, report: GateReport | None, copies: Mapping[int, int], measured: Mapping[int, MeasuredOut]
) -> dict[str, object]:
    """The full shape. Needs `with_bundle()`; `report` is the newest on the bundle as it is."""
    return {
        **scenario_row(row, copies, measured),
        "env": {},
        "fixtures": [],
        **row.text.bundle,
        "seed": row.seed,
        "not_run_here": stored_task(row.text.bundle).not_run_here() if row.family == Family.HARBOR else [],
        "gate": None if report is None else gate_out(report),
    }


def gate_out(report: GateReport) -> dict[str, object]:
    return {
        "verdict": report.verdict,
        "reason": report.reason,
        "backend": report.backend or None,
        "run": None if report.run_id is None else str(report.run_id),
        "created_at": report.created_at,
        "checks": report.checks,
        "axes": checked_axes(report),
    }
