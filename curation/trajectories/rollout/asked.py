"""Facts from the supervisor's record of executed programs: was the documentation read, was the provider asked?

The agent's own text is no source. A page that is a file is read by programs that are not recorded, and a program
without arguments may print its usage or do its work: then the fact is unknown.
"""

from collections.abc import Sequence

from curation.scenarios.bundles.document import Bundle
from curation.scenarios.claims.evidence import BundleEvidence
from curation.trajectories.models import ASKED, READ, FactState
from sandbox.gate.documentation import is_call_for_help
from sandbox.protocol import ProgramRun


def asked_facts(bundle: Bundle, runs: Sequence[ProgramRun] | None) -> dict[str, str]:
    """The two facts, as a trajectory's `axes` have them. `runs` is None where the kernel permits no record."""
    evidence = BundleEvidence(bundle)
    programs = {file.path for file in evidence.programs}
    if runs is None or not programs:
        return {READ: FactState.UNKNOWN, ASKED: FactState.UNKNOWN}
    depth = bundle.axes.get("doc_depth")
    helps = [run for run in runs if is_call_for_help(run) or (depth == "usage-error" and _is_bare(run, programs))]
    rest = [run for run in runs if run not in helps and run.path in programs]
    unclear = [run for run in rest if depth != "help" and not run.arguments]
    return {
        READ: _known(yes=bool(helps), unknown=bool(unclear or evidence.pages)),
        ASKED: _known(yes=len(rest) > len(unclear), unknown=bool(unclear)),
    }


def _is_bare(run: ProgramRun, programs: set[str]) -> bool:
    return run.path in programs and not run.arguments


def _known(*, yes: bool, unknown: bool) -> str:
    return FactState.YES if yes else FactState.UNKNOWN if unknown else FactState.NO
