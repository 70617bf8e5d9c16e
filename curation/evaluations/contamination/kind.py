"""The run kind `contamination`: which rows of a split are in the training data."""

from collections.abc import Sequence

from curation.evaluations.contamination.stage import CheckStage, tasks_of
from curation.evaluations.contamination.training import CheckParams, training_data
from curation.evaluations.models import ContaminationCheck, Split
from curation.exports.hygiene.embed import EmbedStage
from curation.imports.sources.stored import check_upload, hold_upload
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, Stage
from curation.runs.models import Run
from curation.web.ids import find, find_param
from curation.web.problems import FieldError, Invalid


class ContaminationRun(Kind[CheckParams]):
    name = "contamination"
    title = "Contamination of a split"
    pipeline = Pipeline.EVALUATION
    summary = "Looks for the rows of a split in training data."
    params = CheckParams
    feeds_others = False
    launch_page = "split-list"

    def stages(self, params: CheckParams) -> Sequence[Stage]:
        check = CheckStage(params)
        return [EmbedStage(params.embedding, lambda run: tasks_of(run, params)), check] if params.embedding else [check]

    def check(self, project: Project, params: CheckParams) -> None:
        split = find_param(Split.objects.of(project), params.split, "split", "params.split")
        training = training_data(project, params)
        params.embedding = project.settings.evaluation.embedding
        if params.embedding:
            targets_named(project, [params.embedding], "embedding")
        if params.upload:
            check_upload(project, params.upload)
        if training.split == split:
            reason = "A split always contains its own rows."
            raise Invalid(reason, errors=[FieldError("params.training_split", reason)])
        if split.rows_count == 0:
            raise Invalid(
                "The split has no rows yet. Wait until its import has ended, or choose another.",
                errors=[FieldError("params.split", "has no rows yet")],
            )

    def estimate(self, project: Project, params: CheckParams) -> Estimate:
        if not params.embedding:
            return super().estimate(project, params)
        return Estimate(cost=None, notes=("The tasks of the split and of the training data are embedded.",))

    def begin(self, run: Run, params: CheckParams) -> Json:
        if params.upload:
            hold_upload(run.project, params.upload)
        check = ContaminationCheck.objects.create(
            split=find(Split.objects.of(run.project), params.split, "split"),
            run=run,
            against=training_data(run.project, params).label[:200],
            created_by=run.created_by,
        )
        return {"check": str(check.pk), "split": params.split}

    def finish(self, run: Run, params: CheckParams) -> Json:
        return dict(ContaminationCheck.objects.get(run=run).counts)
