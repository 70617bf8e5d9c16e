from dataclasses import dataclass

from curation.scenarios.claims.check import AxisCheck
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
    axes: tuple[AxisCheck, ...] = ()
