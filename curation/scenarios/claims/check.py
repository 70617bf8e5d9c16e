"""Whether a scenario is what its axes claim, and the clearance of mismatches: a person says that the claims are right,
and the scenario is admitted.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from django.db import transaction
from ninja import Schema
from pydantic import Field

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.scenarios.claims.evidence import FITS, BundleEvidence, ClaimFinding, Found, mismatch, unchecked
from curation.scenarios.claims.provider import check_documentation, check_provider
from curation.scenarios.claims.task import check_task
from curation.scenarios.models import MAX_REASON, AxisClearance, GateReport, Scenario, ScenarioStatus
from curation.scenarios.taxonomy.axes import shipped_taxonomy
from curation.web.ids import lock_row
from curation.web.problems import Conflict, FieldError, Invalid, Stale
from curation.web.schemas import Out, Username


class ClearanceOut(Out):
    """A person says that the claim is right."""

    by: Username | None = Field(validation_alias="user", description="Null if the account was deleted.")
    comment: str
    at: datetime = Field(validation_alias="created_at")


class AxisCheckOut(Schema):
    """One claimed axis. A mismatch that nobody cleared holds the scenario back."""

    axis: str = Field(examples=["doc_depth"])
    value: str = Field(examples=["layered"])
    finding: str = Field(examples=["mismatch"], description="fits, mismatch or unchecked")
    reason: str = Field(description="What is wrong, or why it is unchecked.")
    cleared: ClearanceOut | None = None

    def as_json(self) -> dict[str, str]:
        """The check as reports store it."""
        return self.model_dump(exclude={"cleared"})


def check_axes(evidence: BundleEvidence) -> tuple[AxisCheckOut, ...]:
    checked = []
    for axis, given in evidence.bundle.axes.items():
        value = str(given)
        finding, reason = _check(axis, value, evidence)
        checked.append(AxisCheckOut(axis=axis, value=value, finding=finding.value, reason=reason))
    return tuple(checked)


def reason_of(wrong: Sequence[AxisCheckOut]) -> str:
    """Why mismatches hold a scenario back, as one sentence for each."""
    return " ".join(f"{check.axis} is claimed as {check.value}, but {check.reason}." for check in wrong)


def _check(axis: str, value: str, evidence: BundleEvidence) -> Found:
    shipped = shipped_taxonomy().axes.get(axis)
    if shipped is None or value not in shipped.values:
        return unchecked("a value of this project, which the gate does not know")
    check = _AXES.get(axis)
    found = check(value, evidence) if check else None
    return found or unchecked("the gate cannot tell; rollouts measure it" if axis == "difficulty" else "not known")


def _announcement(value: str, evidence: BundleEvidence) -> Found | None:
    kind = evidence.bundle.announcement.kind
    return FITS if kind == value else mismatch(f"the announcement is of kind `{kind}`")


_AXES: Mapping[str, Callable[[str, BundleEvidence], Found | None]] = {
    "announcement": _announcement,
    "provider": check_provider,
    "doc_depth": check_documentation,
    "task": check_task,
}


def clear_axes(
    *, access: Access, scenario: Scenario, axes: Collection[str], comment: str, seen_version: int | None = None
) -> Scenario:
    """Clear the mismatches of `axes` on the current bundle; a held scenario without others is admitted.

    Raises `Conflict` if the scenario is not held, `Invalid` for an axis without a mismatch or a missing comment,
    `Stale` if `seen_version` is not the current one.
    """
    access.require(Scope.RUN)
    if not comment.strip():
        raise Invalid.fields([FieldError("comment", "say why the axes are right")])
    with transaction.atomic():
        row = lock_row(scenario, "scenario")
        if seen_version is not None and seen_version != row.version:
            raise Stale.version(seen_version, row.version)
        if row.status != ScenarioStatus.HELD:
            raise Conflict(
                f"The scenario is {row.get_status_display().lower()}. Only the axes of a held scenario can be cleared.",
                code="not_held",
            )
        wrong = {check.axis: check for check in open_mismatches(row)}
        unknown = [axis for axis in axes if axis not in wrong]
        if unknown or not axes:
            said = f"no mismatch to clear; there are {', '.join(wrong)}"
            raise Invalid.fields(
                [FieldError("axes", f"{axis}: {said}") for axis in unknown] or [FieldError("axes", said)]
            )
        AxisClearance.objects.bulk_create(
            AxisClearance(
                scenario=row, bundle_sha256=row.bundle_sha256, axis=axis, comment=comment.strip(), user=access.user
            )
            for axis in dict.fromkeys(axes)
        )
        left = [check for axis, check in wrong.items() if axis not in axes]
        row.status, row.reason = (
            (ScenarioStatus.HELD, reason_of(left)[:MAX_REASON]) if left else (ScenarioStatus.ADMITTED, "")
        )
        row.save(update_fields=["status", "reason", "updated_at"])
        data: dict[str, object] = {
            "scenario": str(row.pk),
            "bundle_sha256": row.bundle_sha256,
            "axes": {axis: wrong[axis].as_json() for axis in axes},
            "comment": comment.strip(),
        }
        access.record("scenario.clear_axes", row.name, data)
    return row


def open_mismatches(row: Scenario) -> list[AxisCheckOut]:
    """The mismatches of the newest report on the current bundle that nobody cleared."""
    report = GateReport.objects.newest_of([row]).get(row.pk)
    checks = checked_axes(report) if report else []
    return [check for check in checks if check.finding == ClaimFinding.MISMATCH and check.cleared is None]


def checked_axes(report: GateReport) -> list[AxisCheckOut]:
    """Return the claims that a report checked, mismatches with the person who cleared them."""
    cleared = AxisClearance.objects.of_bundle(report.scenario_id, report.bundle_sha256) if report.axes else {}
    found = []
    for check in report.axes:
        by = cleared.get(check["axis"]) if check["finding"] == ClaimFinding.MISMATCH else None
        found.append(AxisCheckOut.model_validate({**check, "cleared": by}))
    return found
