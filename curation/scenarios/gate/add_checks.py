"""Add checks of a later run to a scenario's report, and refuse the scenario if one failed."""

from collections.abc import Sequence

from django.db import transaction

from curation.runs.kinds import Json
from curation.runs.models import Run
from curation.scenarios.models import MAX_REASON, GateReport, Scenario, ScenarioStatus
from curation.web.text.storable import storable, storable_json
from sandbox.gate.report import Check

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
