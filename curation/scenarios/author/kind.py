from collections.abc import Mapping, Sequence

from django.db.models import Count
from django.urls import reverse

from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, Stage
from curation.runs.models import Run
from curation.runs.workers.sandbox_report import require_sandbox
from curation.scenarios.author.repair import repair_stages
from curation.scenarios.author.stage import AuthorParams, AuthorStage, authored_in
from curation.scenarios.gate.kind import CHECKS, TEMPLATE, gate_section
from curation.scenarios.gate.stage import gate_stage
from curation.scenarios.models import ScenarioStatus
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.web.refusals import all_checks
from curation.web.text.figures import counted

# Tokens of the instructions with the order and of a bundle; the share of bundles that need a repair.
ORDER, BUNDLE, AGAIN = 1_800, 1_600, 0.3


class AuthorRun(Kind[AuthorParams]):
    name = "author"
    title = "Author: a teacher writes scenarios, the gate proves them"
    pipeline = Pipeline.SCENARIOS
    summary = "A teacher model writes scenarios, and the gate proves each one."
    tells_of_samples = False
    params = AuthorParams
    section_template = TEMPLATE

    def stages(self, params: AuthorParams) -> Sequence[Stage]:
        # When failed items are retried, scenarios that were admitted are not gated again.
        gate = gate_stage(repeats=params.repeats, dry_run=params.dry_run, again=False, scenarios=authored_in)
        return [AuthorStage(params), gate, *(() if params.dry_run else repair_stages(params))]

    def check(self, project: Project, params: AuthorParams) -> None:
        with all_checks() as check:
            with check():
                targets_named(project, [params.model], "model")
            with check():
                params.pins(taxonomy_of(project.settings))
            with check():
                if not params.dry_run:
                    require_sandbox()

    def estimate(self, project: Project, params: AuthorParams) -> Estimate:
        target = targets_named(project, [params.model], "model")[0]
        again = round(params.n * AGAIN) if params.attempts > 1 else 0
        calls = params.n + again
        tokens_in, tokens_out = calls * ORDER + again * BUNDLE, calls * BUNDLE
        sandboxes = params.n * (CHECKS + params.repeats)
        gate = "checks only the structure" if params.dry_run else f"opens {counted(sandboxes, 'sandbox')}"
        note = f"The gate calls no model and {gate}."
        if again:
            bundles = f"{again:,} of {counted(params.n, 'bundle')} {'is' if again == 1 else 'are'}"
            note = f"{bundles} expected to need a second call. {note}"
        if params.repairs and not params.dry_run:
            note += (
                f" What it refuses goes back to the model at most {counted(params.repairs, 'time')}, which costs more."
            )
        priced = Estimate.of_calls(target, items=params.n, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out)
        return Estimate.total([priced], note)

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        launch = reverse("run-new", args=[run.project.slug])
        return [("Launch a rollout", f"{launch}?kind=rollout")]

    def finish(self, run: Run, params: AuthorParams) -> Json:
        counted = dict(authored_in(run).order_by().values_list("status").annotate(n=Count("id")))
        verdicts = (ScenarioStatus.ADMITTED, ScenarioStatus.HELD, ScenarioStatus.REJECTED, ScenarioStatus.DRY_RUN)
        return {"scenarios": sum(counted.values())} | {status.value: counted.get(status, 0) for status in verdicts}

    def conclude(self, run: Run) -> str:
        made, admitted = run.result["scenarios"], run.result[ScenarioStatus.ADMITTED]
        return f"{counted(made, 'scenario')} written; the gate admitted {admitted:,}."

    def section(self, run: Run) -> Mapping[str, object]:
        return gate_section(run)
