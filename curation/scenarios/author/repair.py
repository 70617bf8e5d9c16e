"""Stage `repair-n`: bundles that the gate did not admit go back to the teacher with the report, to be gated again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from curation.runs.calls.targets import ModelStage, run_instructions, run_target
from curation.runs.kinds import ItemSkipped, Json, LlmContext, PlannedItem, Stage, Write
from curation.runs.models import Item, Run
from curation.scenarios.author.reply import AuthorJob, first_messages, refused_messages
from curation.scenarios.author.stage import (
    INSTRUCTIONS,
    AuthorParams,
    WrittenDocument,
    ask_for_bundle,
    authored_in,
)
from curation.scenarios.bundles.document import Bundle
from curation.scenarios.bundles.harbor import HarborTask
from curation.scenarios.bundles.save import save_scenario
from curation.scenarios.claims.evidence import ClaimFinding
from curation.scenarios.gate.result import BundleGateResult
from curation.scenarios.gate.stage import GateStage, Scenarios, save_verdict
from curation.scenarios.models import GateReport, Scenario, ScenarioQuerySet, ScenarioStatus
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.web.problems import Stale

REFUSED = (ScenarioStatus.REJECTED, ScenarioStatus.HELD)


@dataclass(frozen=True, slots=True)
class RepairJob:
    job: AuthorJob
    scenario: Scenario
    report: GateReport


class RepairStage(ModelStage[AuthorParams]):
    lasting: ClassVar = True
    mends: ClassVar = True

    def __init__(self, params: AuthorParams, number: int, scenarios: Scenarios = authored_in) -> None:
        super().__init__(params)
        self._scenarios = scenarios
        self.name = f"repair-{number}"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        refused = self._scenarios(run).filter(status__in=REFUSED).order_by("id")
        for scenario_id in refused.values_list("pk", flat=True).iterator(2000):
            yield PlannedItem(str(scenario_id), scenario_id)

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, RepairJob]:
        target, taxonomy = run_target(run, self._params.model), taxonomy_of(run.settings)
        instructions = run_instructions(run, INSTRUCTIONS)
        ids = [item.target_id for item in items if item.target_id is not None]
        rows = list(self._scenarios(run).filter(status__in=REFUSED, pk__in=ids).with_bundle())
        reports = GateReport.objects.newest_of(rows)
        jobs = {
            row.pk: RepairJob(
                AuthorJob(
                    target,
                    instructions,
                    taxonomy,
                    {axis: str(value) for axis, value in row.axes.items()},
                    row.seed or 0,
                ),
                row,
                reports[row.pk],
            )
            for row in rows
            if row.pk in reports
        }
        return {item.pk: jobs[item.target_id] for item in items if item.target_id in jobs}

    async def work(self, context: LlmContext, item: Item, job: RepairJob | None) -> Write:
        if job is None:
            raise ItemSkipped("its scenario was deleted, or is no longer refused")
        messages = [
            *first_messages(job.job),
            *refused_messages(job.scenario.text.bundle, [*job.report.checks, *_mismatches(job.report)]),
        ]
        written = await ask_for_bundle(context, item, job.job, messages, self._params)
        return save_repair(context.run, job.scenario, written)


def repair_stages(params: AuthorParams) -> Sequence[Stage]:
    """A repair and another gate, as often as the parameters say."""
    stages: list[Stage] = []
    for number in range(1, params.repairs + 1):
        gate = GateStage(repeats=params.repeats, again=False, scenarios=_repaired)
        gate.name = f"gate-{number + 1}"
        stages += [RepairStage(params, number), gate]
    return stages


def _mismatches(report: GateReport) -> list[Json]:
    """The claimed axes that the gate's run contradicts, as failed checks."""
    return [
        {
            "name": f"axis {axis['axis']}",
            "passed": False,
            "reason": f"{axis['value']} was asked for, but {axis['reason']}",
        }
        for axis in report.axes
        if axis["finding"] == ClaimFinding.MISMATCH
    ]


def _repaired(run: Run) -> ScenarioQuerySet:
    return authored_in(run).filter(status=ScenarioStatus.DRAFT)


def save_repair(
    run: Run,
    scenario: Scenario,
    written: WrittenDocument[Bundle] | WrittenDocument[HarborTask],
    judged: BundleGateResult | None = None,
) -> Write:
    """Save the mended document under the scenario's name, with its verdict if it has one, unless a person edited the
    scenario meanwhile."""

    def write() -> Json:
        mended = written.document.model_copy(update={"name": scenario.name})
        try:
            _, changed = save_scenario(
                project=run.project,
                bundle=mended,
                user=run.created_by,
                scenario=scenario,
                run=run if scenario.run_id == run.pk else None,
                seen_version=scenario.version,
            )
        except Stale:
            return {"repaired": False, "reason": "edited meanwhile"}
        if judged is not None:
            save_verdict(scenario.pk, mended.sha256, run=run, judged=judged)
        return {"scenario": str(scenario.pk), "repaired": changed, **written.result()}

    return write
