"""The result of the gate for one bundle, and the checks that a later run adds to the report of its scenario."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from curation.runs.kinds import Json
from curation.runs.models import Run
from curation.scenarios.claims.check import AxisCheckOut
from curation.scenarios.models import MAX_REASON, GateReport, Scenario, ScenarioStatus
from curation.web.text.storable import storable, storable_json
from sandbox.gate.report import Check


@dataclass(frozen=True, slots=True)
class BundleGateResult:
    """The gate's verdict on one bundle. `status` is admitted, rejected or dry_run; `backend` is empty for a dry run.

    `axes` are checked if the bundle is admitted otherwise; a mismatch holds it back (`save_verdict`).
    """

    status: str
    reason: str
    checks: tuple[Check, ...]
    backend: str = ""
    axes: tuple[AxisCheckOut, ...] = ()


EDITED = "edited meanwhile"


@transaction.atomic
def add_checks(
    *, scenario_id: int, bundle_sha256: str, run: Run, checks: Sequence[Check], refused: ScenarioStatus, backend: str
) -> Json:
    """Write a new report: the newest one of this bundle with these checks after its own. The scenario gets the status
    `refused` if one of them failed, unless its bundle was edited meanwhile."""
    row = Scenario.objects.select_for_update().filter(pk=scenario_id, bundle_sha256=bundle_sha256).first()
    if row is None:
        return {"verdict": EDITED}
    newest = GateReport.objects.newest_of([row]).get(row.pk)
    failed = next((check for check in checks if not check.passed), None)
    if failed is not None:
        row.status, row.reason = refused, storable(f"{failed.name}: {failed.reason}")[:MAX_REASON]
        row.save(update_fields=["status", "reason", "updated_at"])
    earlier: list[Json] = newest.checks if newest else []
    report = GateReport.objects.create(
        scenario=row,
        run=run,
        bundle_sha256=bundle_sha256,
        verdict=row.status,
        reason=row.reason,
        checks=storable_json([*earlier, *(check.as_json() for check in checks)]),
        axes=newest.axes if newest else [],
        backend=newest.backend if newest else backend,
    )
    return {"verdict": row.status, "report": report.pk}
