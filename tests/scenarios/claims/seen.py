"""Evidence of a bundle as the gate gets it, without the gate's attempts to cheat."""

from dataclasses import replace

from curation.scenarios.bundles.document import Bundle
from curation.scenarios.claims.check import AxisCheckOut, check_axes
from curation.scenarios.claims.evidence import BundleEvidence
from curation.scenarios.gate.stage import reference_of, subject_of, task_of
from curation.scenarios.taxonomy.axes import shipped_taxonomy
from sandbox.gate.documentation import read_documentation
from sandbox.gate.play import Rooms, snapshot_in
from sandbox.gate.provider import find_traces
from sandbox.gate.state import changes_between, is_temporary
from sandbox.protocol import SandboxBackend, SandboxSession


def evidence_of(bundle: Bundle, backend: SandboxBackend) -> BundleEvidence:
    """Run the reference, find the provider's traces, and call the provider's programs."""
    rooms = Rooms(task_of(bundle, labels={}), backend.session)
    commands = reference_of(bundle).commands

    def run(session: SandboxSession) -> object:
        before = snapshot_in(session).paths
        for command in commands:
            session.exec(command, 30)
        return changes_between(before, snapshot_in(session).paths)

    changes = rooms.fresh(run, setup=rooms.roomy())
    assert isinstance(changes, dict)
    traces = find_traces(rooms, commands, changes, subject_of(bundle).told).paths
    kept = {path: change for path, change in changes.items() if path not in traces and not is_temporary(path)}
    seen = BundleEvidence(bundle, changes=kept)
    return replace(seen, documentation=read_documentation(rooms, seen.programs))


def check_claim(seen: BundleEvidence, axis: str, value: str) -> AxisCheckOut:
    """Check one claim in the place of the bundle's own."""
    bundle = seen.bundle.model_copy(update={"axes": {**seen.bundle.axes, axis: value}})
    return next(check for check in check_axes(replace(seen, bundle=bundle)) if check.axis == axis)


def accepted(seen: BundleEvidence, axis: str) -> set[str]:
    """The values of an axis that the gate would let pass for this bundle."""
    values = shipped_taxonomy().axes[axis].values
    return {value for value in values if check_claim(seen, axis, value).finding != "mismatch"}
