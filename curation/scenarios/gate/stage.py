"""Stage `gate`: verify each scenario in new sandboxes, admit it or reject it with a reason (`sandbox.agent.gate`).

A dry run checks only the bundle's structure and marks the scenario as such.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from django.db import transaction

from curation.runs.kinds import ItemFailed, ItemSkipped, Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, Run
from curation.runs.workers.sandbox import backend, labels_of
from curation.scenarios.bundles.document import Bundle, parse_bundle, setup_of, stored_bundle, terminal_of
from curation.scenarios.models import GateReport, Scenario, ScenarioQuerySet, Status
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.web.problems import Invalid
from curation.web.text.storable import storable, storable_json
from sandbox.agent.action import Ending
from sandbox.agent.gate import Check, GateVerdict, Reference, run_gate
from sandbox.agent.shell_environment import Task
from sandbox.errors import SandboxFailed
from sandbox.protocol import Labels

CHUNK = 2000
MAX_REASON = 500
ALREADY_ADMITTED = "already admitted; name it in the filter to gate it again"


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate's verdict on one bundle. `status` is admitted, rejected or dry_run; `backend` is empty for a dry run."""

    status: str
    reason: str
    checks: tuple[Check, ...]
    backend: str = ""


class GateStage:
    """`scenarios` returns the run's scenarios; admitted ones are skipped unless `again`."""

    name = "gate"
    lasting: ClassVar = True

    def __init__(
        self,
        *,
        repeats: int,
        dry_run: bool = False,
        again: bool = True,
        scenarios: Callable[[Run], ScenarioQuerySet],
    ) -> None:
        # A dry run needs no sandbox.
        self.queue = "default" if dry_run else "sandbox"
        self._repeats, self._dry_run, self._again, self._scenarios = repeats, dry_run, again, scenarios

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        rows = self._scenarios(run).order_by("id").values_list("pk", "status")
        for scenario_id, status in rows.iterator(CHUNK):
            known = status == Status.ADMITTED and not self._again
            yield PlannedItem(str(scenario_id), scenario_id, skipped=ALREADY_ADMITTED if known else "")

    def work(self, context: WorkContext, item: Item) -> Write:
        scenario = Scenario.objects.of(context.run.project).with_bundle().filter(pk=item.target_id or 0).first()
        if scenario is None:
            raise ItemSkipped("its scenario was deleted")
        if self._dry_run:
            judged = check_structure(scenario, context.run)
        else:
            bundle = stored_bundle(scenario.text.bundle)
            try:
                judged = gate_bundle(
                    bundle, repeats=self._repeats, labels=labels_of(item), checkpoint=context.checkpoint
                )
            except SandboxFailed as failed:
                raise ItemFailed(f"the sandbox failed, so there is no verdict: {failed}") from failed
        sha256 = scenario.bundle_sha256
        return lambda: save_verdict(scenario_id=scenario.pk, bundle_sha256=sha256, run=context.run, judged=judged)


def gate_bundle(
    bundle: Bundle, *, repeats: int, labels: Labels, checkpoint: Callable[[], None] = lambda: None
) -> GateResult:
    """Gate a bundle in this machine's sandbox. Raises `NoSandbox` or `SandboxFailed`."""
    sandbox = backend()
    verdict = run_gate(
        task=task_of(bundle, labels=labels),
        reference=_reference(bundle),
        open_session=sandbox.session,
        repeats=repeats,
        checkpoint=checkpoint,
    )
    return GateResult(_status(verdict), verdict.reason, verdict.checks, sandbox.name)


def check_structure(scenario: Scenario, run: Run) -> GateResult:
    """Check the bundle by its schema and the project's taxonomy, without a sandbox."""
    try:
        parse_bundle(scenario.text.bundle, taxonomy=taxonomy_of(run.settings))
    except Invalid as refused:
        return GateResult(Status.REJECTED, f"structure: {refused.detail}", (Check("structure", False, refused.detail),))
    return GateResult(Status.DRY_RUN, "", (Check("structure", True),))


@transaction.atomic
def save_verdict(*, scenario_id: int, bundle_sha256: str, run: Run | None, judged: GateResult) -> Json:
    """Save the report and set the scenario's status, unless its bundle was edited meanwhile."""
    row = Scenario.objects.select_for_update().filter(pk=scenario_id).first()
    if row is None:
        return {"verdict": "deleted meanwhile"}
    reason = storable(judged.reason)[:MAX_REASON]
    report = GateReport.objects.create(
        scenario=row,
        run=run,
        bundle_sha256=bundle_sha256,
        verdict=judged.status,
        reason=reason,
        checks=storable_json([check.as_json() for check in judged.checks]),
        backend=judged.backend,
    )
    if row.bundle_sha256 != bundle_sha256:
        return {"verdict": "edited meanwhile", "report": report.pk}
    row.status, row.reason = judged.status, reason
    row.save(update_fields=["status", "reason", "updated_at"])
    return {"verdict": judged.status, "reason": reason, "report": report.pk}


def task_of(bundle: Bundle, *, labels: Labels) -> Task:
    """The scenario as the sandbox engine reads it."""
    return Task(
        setup=setup_of(bundle, labels=labels), checker=bundle.checker, expected_terminal=bundle.expected_terminal
    )


def _reference(bundle: Bundle) -> Reference:
    found = terminal_of(bundle.reference_solution)
    if found is None:  # only a row that was not saved through `parse_bundle`
        raise ItemFailed("its reference solution does not end in `exit` or `panic`")
    return Reference(found.body, Ending(found.terminal, found.reason))


def _status(verdict: GateVerdict) -> str:
    return Status.ADMITTED if verdict.admitted else Status.REJECTED
