"""The run kind `score`."""

from collections.abc import Sequence

from django.db.models import Avg, FloatField, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.urls import reverse

from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, RunFact, Stage
from curation.runs.models import Item, ItemState, Run
from curation.runs.workers.sandbox_report import require_sandbox
from curation.trajectories.filters import TrajectoryFilter
from curation.trajectories.params import matching_trajectories
from curation.trajectories.scorers.params import ScoreParams
from curation.trajectories.scorers.stage import KIND, ProgramStage, RubricStage
from curation.web.outbound.addresses import WEBHOOKS, refuse_private
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.text.figures import counted, number

# Tokens of a step in a session that is shown to the model, of the instructions, and of a reply.
STEP_TOKENS, OPENING_TOKENS, REPLY_TOKENS = 300, 400, 80


class ScoreRun(Kind[ScoreParams]):
    name = KIND
    title = "Score: a reward from a scorer of your own"
    pipeline = Pipeline.REVIEW
    summary = "A Python function, a server or a rubric scores trajectories. The score is a reward of that name."
    filter = TrajectoryFilter
    params = ScoreParams

    def stages(self, params: ScoreParams) -> Sequence[Stage]:
        return [RubricStage(params) if params.rubric else ProgramStage(params)]

    def check(self, project: Project, params: ScoreParams) -> None:
        with all_checks() as check:
            with check():
                if not matching_trajectories(project, params.filter).exists():
                    detail = "No trajectory matches, so there is nothing to score. Change the filter, or import some."
                    raise Invalid.at("params.filter", detail, code="no_trajectories")
            with check():
                if params.model:
                    targets_named(project, [params.model], "model")
            with check():
                if params.python:
                    require_sandbox()
            with check():
                if params.url:
                    refuse_private(params.url, WEBHOOKS)

    def estimate(self, project: Project, params: ScoreParams) -> Estimate:
        rows = matching_trajectories(project, params.filter)
        items = rows.count()
        if not params.rubric:
            return Estimate(items=items, notes=("No model is called.",))
        steps = rows.aggregate(steps=Sum("steps"))["steps"] or 0
        calls = steps if params.subject == "step" else items
        # A step is shown with the steps before it.
        shown = STEP_TOKENS * (steps * steps // max(1, 2 * items) if params.subject == "step" else steps)
        target = targets_named(project, [params.model], "model")[0]
        return Estimate.of_calls(
            target, items=items, calls=calls, tokens_in=shown + calls * OPENING_TOKENS, tokens_out=calls * REPLY_TOKENS
        )

    def finish(self, run: Run, params: ScoreParams) -> Json:
        done = Item.objects.filter(run=run, state=ItemState.DONE, result__has_key="score").order_by()
        mean = done.aggregate(mean=Avg(Cast(KT("result__score"), FloatField())))["mean"]
        return {"scored": done.count(), "mean": mean}

    def conclude(self, run: Run) -> str:
        if not run.result["scored"]:
            return ""
        mean, scored = number(run.result["mean"], 2), counted(run.result["scored"], "trajectory")
        lack = run.items_total - run.result["scored"]
        without = f" {counted(lack, 'trajectory')} got none, and the average is without them." if lack else ""
        return f"{scored} got the reward {run.params['name']}, {mean} on average.{without}"

    def results(self, run: Run) -> Sequence[RunFact]:
        if not run.result.get("scored"):
            return []
        url = f"{reverse('trajectory-list', args=[run.project.slug])}?reward={run.params['name']}"
        return [
            RunFact("Trajectories scored", f"{run.result['scored']:,} of {run.items_total:,}", url),
            RunFact(f"Mean of {run.params['name']}", number(run.result["mean"], 2)),
        ]
