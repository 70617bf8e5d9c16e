from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from django.db.models import Count, Max
from django.urls import reverse
from pydantic import Field

from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, Stage
from curation.runs.launch import launch
from curation.runs.models import Item, ItemState, Run
from curation.runs.workers.sandbox_report import require_sandbox
from curation.scenarios.filters import ScenarioFilter
from curation.scenarios.gate.harbor import TRIALS, require_harbor
from curation.scenarios.gate.stage import GateStage, gate_stage, gates_at_once
from curation.scenarios.models import Family, GateReport, Scenario, ScenarioQuerySet, ScenarioStatus
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted
from curation.web.text.markup import with_signs

# Sessions per scenario without repeats: untouched, only exit, only panic, the claim, the reference, and about seven in
# which its checker is tested; an attempt that gets in is shown in one more.
CHECKS = 12
# With one of these fields in the filter, admitted scenarios are gated again too.
NAMING_FIELDS = {"id", "name", "status"}


class GateParams(StrictModel):
    """`repeats`: of the reference solution; `dry_run` checks only the structure."""

    repeats: Annotated[int, Field(ge=0, le=20)] = 2
    filter: dict[str, Any] = {}
    dry_run: bool = False


def scenarios_in(project: Project, given: Json) -> ScenarioQuerySet:
    """The project's scenarios that match a run's filter. Raises `Invalid` for an invalid filter."""
    return ScenarioFilter.from_json(given, path="params.filter").apply(Scenario.objects.of(project))


TEMPLATE = "scenarios/gate/_run_gate.html"
SHOWN = 50


def gate_section(run: Run) -> dict[str, object]:
    """Context of `TEMPLATE`: scenarios by their last verdict in the run, and the latest reasons for a refusal."""
    reports = GateReport.objects.filter(run=run)
    last = reports.order_by().values("scenario").annotate(last=Max("id")).values("last")
    counts = dict(reports.filter(pk__in=last).order_by().values_list("verdict").annotate(n=Count("id")))
    refused = (
        reports.filter(verdict__in=(ScenarioStatus.REJECTED, ScenarioStatus.HELD))
        .select_related("scenario")
        .order_by("-id")
    )
    slug = run.project.slug
    return {
        "verdicts": [
            {"status": status, "count": counts[status.value]} for status in ScenarioStatus if status.value in counts
        ],
        "refusals": [
            {
                "name": with_signs(row.scenario.name),
                "url": f"{reverse('scenario-report', args=[slug, row.scenario_id])}?report={row.pk}",
                "reason": with_signs(row.reason),
                "status": ScenarioStatus(row.verdict),
            }
            for row in refused[:SHOWN]
        ],
        "refused": refused.count(),
        "scenarios_url": reverse("scenario-list", args=[slug]),
    }


class GateRun(Kind[GateParams]):
    name = "gate"
    title = "Gate: prove scenarios in the sandbox"
    pipeline = Pipeline.SCENARIOS
    summary = "Proves in fresh sandboxes that scenarios are solvable and their checkers are sound."
    filter = ScenarioFilter
    tells_of_samples = False
    params = GateParams
    section_template = TEMPLATE

    def stages(self, params: GateParams) -> Sequence[Stage]:
        return [
            gate_stage(
                repeats=params.repeats,
                dry_run=params.dry_run,
                again=bool(NAMING_FIELDS & params.filter.keys()),
                scenarios=lambda run: scenarios_in(run.project, params.filter),
            )
        ]

    def check(self, project: Project, params: GateParams) -> None:
        with all_checks() as check:
            with check():
                if not scenarios_in(project, params.filter).exists():
                    detail = "No scenario matches, so there is nothing to gate. Change the filter, or add scenarios."
                    raise Invalid.at("params.filter", detail, code="no_scenarios")
            with check():
                if not params.dry_run:
                    families = set(scenarios_in(project, params.filter).values_list("family", flat=True).distinct())
                    if Family.SHELL in families:
                        require_sandbox()
                    if Family.HARBOR in families:
                        require_harbor()

    def estimate(self, project: Project, params: GateParams) -> Estimate:
        rows = scenarios_in(project, params.filter)
        if not NAMING_FIELDS & params.filter.keys():
            rows = rows.exclude(status=ScenarioStatus.ADMITTED)
        tasks = rows.filter(family=Family.HARBOR).count()
        scenarios = rows.count()
        if params.dry_run:
            return Estimate(items=scenarios, notes=("Nothing is executed.",))
        sandboxes = counted((scenarios - tasks) * (CHECKS + params.repeats), "sandbox")
        notes = [f"No model is called. About {sandboxes}, {counted(gates_at_once(), 'scenario')} at a time."]
        if tasks:
            notes.append(f"Harbor runs about {counted(tasks * (TRIALS + params.repeats), 'trial')} of half a minute.")
        return Estimate(items=scenarios, notes=tuple(notes))

    def finish(self, run: Run, params: GateParams) -> Json:
        rows = Item.objects.filter(run=run, stage=GateStage.name, state=ItemState.DONE).order_by()
        counted = dict(rows.values_list("result__verdict").annotate(n=Count("id")))
        return {status: counted.pop(status, 0) for status in ("admitted", "rejected", "dry_run")} | counted

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        launch = reverse("run-new", args=[run.project.slug])
        return [("Launch a rollout", f"{launch}?kind=rollout")] if run.result.get("admitted") else []

    def conclude(self, run: Run) -> str:
        return f"{counted(run.result['admitted'], 'scenario')} admitted, {run.result['rejected']:,} rejected."

    def section(self, run: Run) -> Mapping[str, object]:
        return gate_section(run)


def start_gate(*, access: Access, wanted: ScenarioFilter, repeats: int | None = None, dry_run: bool = False) -> Run:
    """Launches it. Raises `NoSandbox` where there is nothing to run commands in, unless `dry_run`."""
    access.require(Scope.RUN)
    params: dict[str, object] = {"filter": wanted.model_dump(mode="json", exclude_defaults=True)}
    if repeats is not None:
        params["repeats"] = repeats
    if dry_run:
        params["dry_run"] = True
    return launch(project=access.project, kind=GateRun.name, params=params, user=access.user)
