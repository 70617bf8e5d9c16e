"""The run kind `cluster`: samples that are alike, in groups."""

from collections.abc import Sequence
from typing import Literal

from django.urls import reverse
from pydantic import Field

from curation.exports.hygiene.embed import EmbedStage
from curation.predictions.clusters.samples import refusal, tasks_of
from curation.predictions.clusters.stage import ClusterStage
from curation.predictions.extra import missing_extra
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, RunFact, Stage
from curation.runs.models import Run
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted


class ClusterParams(StrictModel):
    of: Literal["failures", "new"] = Field(
        "failures",
        description="`failures`: rejected samples, those to refine and failed trajectories; `new`: pending samples "
        "unlike anything reviewed so far.",
    )
    embedding: str = Field(
        "", max_length=60, description="Set at launch: the endpoint for embeddings of the project's settings, if any."
    )


class ClusterRun(Kind[ClusterParams]):
    name = "cluster"
    title = "Group samples that are alike"
    pipeline = Pipeline.REVIEW
    summary = "Groups failures, or samples unlike anything reviewed so far, and names each group by its words."
    params = ClusterParams
    feeds_others = False
    set_at_launch = frozenset({"embedding"})

    def stages(self, params: ClusterParams) -> Sequence[Stage]:
        cluster = ClusterStage(params.of, embedded=bool(params.embedding))
        if not params.embedding:
            return [cluster]
        return [EmbedStage(params.embedding, lambda run: tasks_of(run.project, params.of)), cluster]

    def check(self, project: Project, params: ClusterParams) -> None:
        with all_checks() as check:
            with check():
                if missing := missing_extra():
                    raise Invalid(missing, code="missing_extra")
            with check():
                if refused := refusal(project, params.of):
                    raise Invalid(refused, code="nothing_to_group")
            with check():
                params.embedding = project.settings.evaluation.embedding
                if params.embedding:
                    targets_named(project, [params.embedding], "embedding")

    def estimate(self, project: Project, params: ClusterParams) -> Estimate:
        if not params.embedding:
            return super().estimate(project, params)
        return Estimate(cost=None, notes=("The texts of the samples are embedded.",))

    def finish(self, run: Run, params: ClusterParams) -> Json:
        return dict(run.items.get(stage=ClusterStage.name).result)

    def conclude(self, run: Run) -> str:
        found, samples = run.result.get("clusters", 0), run.result.get("samples", 0)
        return f"{counted(samples, 'sample')} in {counted(found, 'group')}."

    def results(self, run: Run) -> Sequence[RunFact]:
        url = reverse("cluster-list", args=[run.project.slug])
        return [RunFact("Groups", f"{run.result['clusters']:,}", url)] if "clusters" in run.result else []

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return [("See the groups", reverse("cluster-list", args=[run.project.slug]))]
