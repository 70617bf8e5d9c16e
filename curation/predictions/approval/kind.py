"""The run kind `predict`: a model of the project's decisions, and its prediction of every pending sample."""

from collections.abc import Sequence

from django.db.models import Max
from django.urls import reverse

from curation.predictions.approval.decisions import PredictParams, require_enough
from curation.predictions.approval.stage import PredictStage
from curation.predictions.extra import missing_extra
from curation.predictions.models import ApprovalModel
from curation.projects.models import Project
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, RunFact, Stage
from curation.runs.models import LIVE, Run
from curation.samples.models import Sample, SampleStatus
from curation.web.problems import Conflict, Invalid
from curation.web.refusals import all_checks
from curation.web.text.figures import counted, number


class PredictRun(Kind[PredictParams]):
    name = "predict"
    title = "Predict approvals"
    pipeline = Pipeline.REVIEW
    summary = "Learns from the project's decisions, and predicts how likely each pending sample is approved."
    params = PredictParams
    feeds_others = False

    def stages(self, params: PredictParams) -> Sequence[Stage]:
        return [PredictStage(params)]

    def check(self, project: Project, params: PredictParams) -> None:
        with all_checks() as check:
            with check():
                if missing := missing_extra():
                    raise Invalid(missing, code="missing_extra")
            with check():
                require_enough(project, params)
            with check():
                if Run.objects.of(project).filter(kind=self.name, state__in=LIVE).exists():
                    raise Conflict("Another run predicts approvals now. Wait until it has ended, or cancel it.")

    def estimate(self, project: Project, params: PredictParams) -> Estimate:
        pending = Sample.objects.of(project).filter(status=SampleStatus.PENDING).count()
        return Estimate(
            items=1, notes=(f"No model is called. {counted(pending, 'pending sample')} will be predicted.",)
        )

    def begin(self, run: Run, params: PredictParams) -> Json:
        versions = ApprovalModel.objects.filter(project=run.project_id).aggregate(last=Max("version"))
        row = ApprovalModel.objects.create(
            project=run.project, run=run, version=(versions["last"] or 0) + 1, seed=params.seed
        )
        return {"model": str(row.pk), "version": row.version}

    def finish(self, run: Run, params: PredictParams) -> Json:
        return dict(run.items.get(stage=PredictStage.name).result)

    def conclude(self, run: Run) -> str:
        row = ApprovalModel.objects.get(run=run)
        auc = number(row.figures["auc"], 2)
        return f"Model {row.version} learned from {counted(row.decisions, 'decision')}, with an AUC of {auc}."

    def results(self, run: Run) -> Sequence[RunFact]:
        url = reverse("prediction-page", args=[run.project.slug])
        if "predicted" not in run.result:
            return []
        return [
            RunFact("Pending samples predicted", f"{run.result['predicted']:,}", url),
            RunFact("Decisions to look at again", f"{run.result['doubtful']:,}", f"{url}#doubts"),
        ]

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        return [
            ("Review the most useful first", f"{reverse('queue', args=[slug])}?order=useful"),
            ("See the model", reverse("prediction-page", args=[slug])),
        ]
