"""The run kind `cluster`: samples that are alike, in groups."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from django.db import transaction
from django.urls import reverse
from pydantic import Field

from curation.exports.hygiene.embed import EmbedStage, vectors_of
from curation.predictions.clusters.samples import refusal, tasks_of, texts
from curation.predictions.extra import missing_extra
from curation.predictions.models import Cluster, ClusteredSample
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import (
    Estimate,
    ItemFailed,
    Json,
    Kind,
    Pipeline,
    PlannedItem,
    RunFact,
    Stage,
    WorkContext,
    Write,
)
from curation.runs.models import Item, Run
from curation.samples.models import Sample
from curation.web.ids import IdList
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted


class ClusterStage:
    name = "cluster"
    queue = "default"

    def __init__(self, of: str, *, embedded: bool) -> None:
        self._of, self._embedded = of, embedded

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem(key="cluster")

    def work(self, context: WorkContext, item: Item) -> Write:
        # scikit-learn takes a second to import, and no other stage needs it.
        from judging.learning.clusters import TextSpace

        run, of = context.run, self._of
        if refused := refusal(run.project, of):
            raise ItemFailed(refused)
        wanted, known = texts(run.project, of)
        total, missing = len(wanted), 0
        embeddings = None
        if self._embedded:
            vectors = vectors_of(run)
            wanted, known = ({pk: text for pk, text in part.items() if text in vectors} for part in (wanted, known))
            missing = total - len(wanted)
            if not wanted or (of == Cluster.Of.NEW and not known):
                raise ItemFailed("The texts have no embeddings: the calls of the endpoint failed.")
            embeddings = np.stack([vectors[text] for text in (*wanted.values(), *known.values())])
        context.checkpoint()
        space = TextSpace([*wanted.values(), *known.values()], embeddings)
        chosen, likeness = list(range(len(wanted))), {}
        if of == Cluster.Of.NEW:
            likeness = dict(space.unlike(chosen, range(len(wanted), len(wanted) + len(known))))
            chosen = list(likeness)
        context.checkpoint()
        groups = [(list(group.words), list(group.members)) for group in space.groups(chosen)]
        counts = {"clusters": len(groups), "samples": len(chosen), "read": total, "not_embedded": missing}

        def write() -> Json:
            _write(run, of, groups, list(wanted), likeness)
            return counts

        return write


@transaction.atomic
def _write(
    run: Run,
    of: str,
    groups: Sequence[tuple[list[str], list[int]]],
    samples: Sequence[int],
    likeness: dict[int, float],
) -> None:
    """Replace the project's clusters of the kind by these; `samples` that are gone are left out."""
    Cluster.objects.filter(project=run.project_id, of=of).delete()
    there = set(Sample.objects.filter(pk__in=IdList(samples)).values_list("pk", flat=True))
    for words, members in groups:
        kept = [member for member in members if samples[member] in there]
        if not kept:
            continue
        cluster = Cluster.objects.create(project=run.project, run=run, of=of, words=words, size=len(kept))
        ClusteredSample.objects.bulk_create(
            [
                ClusteredSample(cluster=cluster, sample_id=samples[member], place=place, likeness=likeness.get(member))
                for place, member in enumerate(kept)
            ],
            batch_size=1_000,
        )


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
