"""The gate's processor time: shipped scenarios go through it as in a run of kind `gate`, with one repeat.

    python -m benchmarks.gate [--at-once 1] [NAME ...]

Prints each scenario's sandboxes and checks, then the totals. On a busy machine times of the clock say little: compare
the seconds of processor, and those of two versions in turn. Ends with 1 if a scenario is not admitted.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from benchmarks.sandbox import processor_seconds

if TYPE_CHECKING:
    from sandbox.protocol import SandboxBackend

SHIPPED = Path(__file__).resolve().parents[1] / "curation" / "scenarios" / "shipped"


@dataclass(frozen=True, slots=True)
class Gated:
    name: str
    reason: str
    sandboxes: int
    checks: int


def main(names: Sequence[str], at_once: int) -> int:
    from sandbox.choose import choose_backend
    from sandbox.errors import SandboxUnavailable

    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        os.environ.update(WINNOW_DATA=folder, DJANGO_SETTINGS_MODULE="config.settings")
        try:
            backend = choose_backend(os.environ.get("SANDBOX", "auto"), folder=Path(folder) / "sandbox")
        except SandboxUnavailable as missing:
            print(f"the gate is left out: {missing}")
            return 0
        gate = _gate(backend)
        began, used = time.perf_counter(), processor_seconds()
        with ThreadPoolExecutor(at_once) as pool:
            gated = list(pool.map(gate, names))
        seconds, spent = time.perf_counter() - began, processor_seconds() - used
    for one in gated:
        print(f"{one.name:28} {one.sandboxes:3} sandboxes {one.checks:4} checks  {one.reason or 'admitted'}")
    checks, sandboxes = sum(one.checks for one in gated), sum(one.sandboxes for one in gated)
    print(f"{len(gated)} scenarios in {backend.name}, {at_once} at once: {sandboxes} sandboxes, {checks} checks")
    each = spent / len(gated)
    print(
        f"{seconds:.1f} s, {spent:.1f} s of processor, {each:.2f} s a scenario, {spent / checks * 1000:.1f} ms a check"
    )
    return int(any(one.reason for one in gated))


def _gate(backend: "SandboxBackend") -> Callable[[str], Gated]:
    import django

    django.setup()

    from curation.scenarios.bundles.document import parse_bundle
    from curation.scenarios.gate.stage import reference_of, subject_of, task_of
    from sandbox.gate.gate import run_gate
    from sandbox.gate.report import CHECKER
    from sandbox.protocol import SandboxSession, Setup

    def gate(name: str) -> Gated:
        bundle = parse_bundle(orjson.loads((SHIPPED / f"{name}.json").read_bytes()))
        opened = 0

        def counting(setup: Setup) -> SandboxSession:
            nonlocal opened
            opened += 1
            return backend.session(setup)

        task, reference, subject = task_of(bundle, labels={}), reference_of(bundle), subject_of(bundle)
        verdict = run_gate(task=task, reference=reference, subject=subject, open_session=counting, repeats=1)
        checks = sum(line.command == CHECKER for check in verdict.checks for line in check.transcript)
        return Gated(name, verdict.reason, opened, checks)

    return gate


if __name__ == "__main__":
    known = sorted(path.stem for path in SHIPPED.glob("*.json"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    sys.exit(main(given.names or known, given.at_once))
