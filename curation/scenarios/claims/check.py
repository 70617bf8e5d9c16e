"""Compare every axis that a bundle claims with the gate's evidence; each axis has a module of its own.

A value that cannot be compared is `unchecked`, never right by default: difficulty, a project's own axes and values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from curation.scenarios.claims.documentation import check_documentation
from curation.scenarios.claims.evidence import FITS, BundleEvidence, Found, mismatch, unchecked
from curation.scenarios.claims.provider import check_provider
from curation.scenarios.claims.task import check_task
from curation.scenarios.taxonomy.axes import shipped_taxonomy


@dataclass(frozen=True, slots=True)
class AxisCheck:
    """One claimed value with the gate's finding. `reason` says why it is a mismatch or unchecked."""

    axis: str
    value: str
    finding: str
    reason: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def check_axes(evidence: BundleEvidence) -> tuple[AxisCheck, ...]:
    checked = []
    for axis, given in evidence.bundle.axes.items():
        value = str(given)
        finding, reason = _check(axis, value, evidence)
        checked.append(AxisCheck(axis, value, finding.value, reason))
    return tuple(checked)


def reason_of(wrong: Sequence[AxisCheck]) -> str:
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
