"""Stage `gate`: verify each scenario in new sandboxes, admit it or reject it with a reason (`sandbox.gate`).

A dry run checks only the bundle's structure and marks the scenario as such.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from django.conf import settings
from django.db import transaction

from curation.llm.client.completion import EndpointTarget
from curation.runs.kinds import ItemFailed, ItemSkipped, Json, LlmContext, PlannedItem, Stage, WorkContext, Write
from curation.runs.models import Item, Run
from curation.runs.workers.sandbox import backend, in_session_thread, labels_of
from curation.scenarios.bundles.document import Bundle, setup_of, stored_bundle, terminal_of
from curation.scenarios.bundles.harbor import is_harbor, parse_scenario, stored_task
from curation.scenarios.claims.check import check_axes, reason_of
from curation.scenarios.claims.evidence import BundleEvidence, ClaimFinding, told
from curation.scenarios.gate.findings import findings_of
from curation.scenarios.gate.harbor import gate_task, harbor_command
from curation.scenarios.gate.reference_commands import commands_of, lost_between
from curation.scenarios.gate.result import BundleGateResult
from curation.scenarios.models import (
    MAX_REASON,
    AxisClearance,
    Family,
    GateReport,
    Scenario,
    ScenarioQuerySet,
    ScenarioStatus,
)
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.web.problems import Invalid
from curation.web.text.storable import storable, storable_json
from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import ShellTask
from sandbox.errors import SandboxError, SandboxFailed
from sandbox.gate.checker_tests import BundleSubject
from sandbox.gate.documentation import read_documentation
from sandbox.gate.gate import run_gate
from sandbox.gate.play import Reference, Rooms
from sandbox.gate.report import Check
from sandbox.protocol import Labels

Scenarios = Callable[[Run], ScenarioQuerySet]
CHUNK = 2000
DELETED = "its scenario was deleted"
ALREADY_ADMITTED = "already admitted; name it in the filter to gate it again"


class _PlannedGate:
    """`scenarios` returns the run's scenarios; admitted ones are skipped unless `again`."""

    name = "gate"
    lasting: ClassVar = True
    movable: ClassVar = True

    def __init__(self, *, again: bool, scenarios: Scenarios) -> None:
        self._again, self._scenarios = again, scenarios

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        rows = self._scenarios(run).order_by("id").values_list("pk", "status")
        for scenario_id, status in rows.iterator(CHUNK):
            known = status == ScenarioStatus.ADMITTED and not self._again
            yield PlannedItem(str(scenario_id), scenario_id, skipped=ALREADY_ADMITTED if known else "")


class DryRunStage(_PlannedGate):
    """The structure alone, without a sandbox."""

    queue = "default"

    def work(self, context: WorkContext, item: Item) -> Write:
        scenario = Scenario.objects.of(context.run.project).with_bundle().filter(pk=item.target_id or 0).first()
        if scenario is None:
            raise ItemSkipped(DELETED)
        judged = check_structure(scenario, context.run)
        return partial(save_verdict, scenario.pk, scenario.bundle_sha256, run=context.run, judged=judged)


class GateStage(_PlannedGate):
    """A process gates several scenarios at once, each in a thread that opens one sandbox after the other, or runs
    trials of Harbor.

    It calls no model; it is a stage of this kind because such stages work on many items at once.
    """

    queue = "sandbox"

    def __init__(self, *, repeats: int, again: bool, scenarios: Scenarios) -> None:
        super().__init__(again=again, scenarios=scenarios)
        self._repeats = repeats
        self.most_open = gates_at_once()

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        """Without what its scenarios need the run ends here and says what to install."""
        families = set(self._scenarios(run).order_by().values_list("family", flat=True).distinct())
        if Family.SHELL in families:
            backend()
        if Family.HARBOR in families:
            harbor_command()
        return []

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, Scenario]:
        """Each scenario with its bundle as it is when its item is claimed."""
        ids = {item.target_id for item in items if item.target_id is not None}
        found = Scenario.objects.of(run.project).with_bundle().in_bulk(ids)
        return {item.pk: found[item.target_id] for item in items if item.target_id in found}

    async def work(self, context: LlmContext, item: Item, job: Scenario | None) -> Write:
        if job is None:
            raise ItemSkipped(DELETED)
        document = job.text.bundle
        if is_harbor(document):
            judged = await gate_harbor(document, repeats=self._repeats)
        else:
            judged = await gate_bundle(stored_bundle(document), repeats=self._repeats, labels=labels_of(item))
        return partial(save_verdict, job.pk, job.bundle_sha256, run=context.run, judged=judged)


def gate_stage(*, dry_run: bool, repeats: int, again: bool, scenarios: Scenarios) -> Stage:
    if dry_run:
        return DryRunStage(again=again, scenarios=scenarios)
    return GateStage(repeats=repeats, again=again, scenarios=scenarios)


def gates_at_once() -> int:
    """Gates that a process works on at once. Each has up to two open sandboxes, whose commands need processors."""
    return max(1, min(2 * (os.cpu_count() or 1), settings.SANDBOX_SESSIONS // 2))


async def gate_bundle(bundle: Bundle, *, repeats: int, labels: Labels) -> BundleGateResult:
    """Gate a bundle in this machine's sandbox. Raises `NoSandbox`, and `ItemFailed` if there is no verdict."""

    def work(checkpoint: Callable[[], None]) -> BundleGateResult:
        sandbox = backend()
        task = task_of(bundle, labels=labels)
        verdict = run_gate(
            task=task,
            reference=reference_of(bundle),
            subject=subject_of(bundle),
            open_session=sandbox.session,
            repeats=repeats,
            checkpoint=checkpoint,
        )
        if not verdict.admitted:
            return BundleGateResult(ScenarioStatus.REJECTED, verdict.reason, verdict.checks, sandbox.name)
        seen = BundleEvidence(bundle, changes=verdict.changes)
        rooms = Rooms(task, sandbox.session, checkpoint)
        seen = replace(seen, documentation=read_documentation(rooms, seen.programs))
        return BundleGateResult(ScenarioStatus.ADMITTED, "", verdict.checks, sandbox.name, check_axes(seen))

    try:
        return await in_session_thread(work)
    except SandboxFailed as failed:
        raise ItemFailed(f"the sandbox failed, so there is no verdict: {failed}") from failed


async def gate_harbor(document: Mapping[str, object], *, repeats: int) -> BundleGateResult:
    """Gate a Harbor task on this machine. Raises `ItemSkipped` for one that cannot run here, and `ItemFailed` if there
    is no verdict."""
    task = stored_task(document)
    if lacking := task.not_run_here():
        raise ItemSkipped(f"it cannot be run here: {' '.join(lacking)}")
    try:
        return await in_session_thread(lambda checkpoint: gate_task(task, repeats=repeats, checkpoint=checkpoint))
    except SandboxError as failed:
        raise ItemFailed(f"Harbor failed, so there is no verdict: {failed}") from failed


def check_structure(scenario: Scenario, run: Run) -> BundleGateResult:
    """Check the bundle by its schema and the project's taxonomy, without a sandbox."""
    try:
        parse_scenario(scenario.text.bundle, taxonomy=taxonomy_of(run.settings))
    except Invalid as refused:
        return BundleGateResult(
            ScenarioStatus.REJECTED, f"structure: {refused.detail}", (Check("structure", False, refused.detail),)
        )
    return BundleGateResult(ScenarioStatus.DRY_RUN, "", (Check("structure", True),))


@transaction.atomic
def save_verdict(scenario_id: int, bundle_sha256: str, *, run: Run | None, judged: BundleGateResult) -> Json:
    """Save the report on a bundle and set the scenario's status, unless it has another bundle meanwhile.

    A claimed axis that the gate's run contradicts holds the scenario back, unless a person cleared it.
    """
    row = Scenario.objects.select_for_update().filter(pk=scenario_id).first()
    if row is None:
        return {"verdict": "deleted meanwhile"}
    status, reason = judged.status, judged.reason
    if status == ScenarioStatus.ADMITTED:
        cleared = AxisClearance.objects.of_bundle(row.pk, bundle_sha256)
        wrong = [check for check in judged.axes if check.finding == ClaimFinding.MISMATCH and check.axis not in cleared]
        if wrong:
            status, reason = ScenarioStatus.HELD, reason_of(wrong)
    reason = storable(reason)[:MAX_REASON]
    report = GateReport.objects.create(
        scenario=row,
        run=run,
        bundle_sha256=bundle_sha256,
        verdict=status,
        reason=reason,
        axes=storable_json([check.as_json() for check in judged.axes]),
        checks=storable_json([check.as_json() for check in judged.checks]),
        backend=judged.backend,
    )
    if row.bundle_sha256 != bundle_sha256:
        return {"verdict": "edited meanwhile", "report": report.pk}
    row.status, row.reason = status, reason
    row.save(update_fields=["status", "reason", "updated_at"])
    return {"verdict": status, "reason": reason, "report": report.pk}


def task_of(bundle: Bundle, *, labels: Labels) -> ShellTask:
    """The scenario as the sandbox engine reads it."""
    return ShellTask(
        setup=setup_of(bundle, labels=labels), checker=bundle.checker, expected_terminal=bundle.expected_terminal
    )


def reference_of(bundle: Bundle) -> Reference:
    found = terminal_of(bundle.reference_solution)
    if found is None:  # only a row that was not saved through `parse_bundle`
        raise ItemFailed("its reference solution does not end in `exit` or `panic`")
    commands = commands_of(found.body)
    return Reference(commands, Ending(found.terminal, found.reason), lost_between(commands))


def subject_of(bundle: Bundle) -> BundleSubject:
    """The gate's input beside the task: the way to the provider, the marks, and the findings in the texts."""
    return BundleSubject(
        told=told(bundle),
        scratch=tuple(bundle.scratch),
        free_order=tuple(bundle.free_order),
        findings=tuple(findings_of(bundle.checker, bundle.reference_solution, setup_of(bundle))),
    )
