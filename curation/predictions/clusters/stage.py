"""The stage that groups samples by their texts."""

from collections.abc import Iterable, Sequence

import numpy as np
from django.db import transaction

from curation.exports.hygiene.embed import vectors_of
from curation.predictions.clusters.samples import ClusteredText, refusal, texts
from curation.predictions.models import Cluster, ClusteredSample
from curation.runs.kinds import ItemFailed, Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, Run
from curation.samples.models import Sample
from curation.web.ids import IdList


class ClusterStage:
    name = "cluster"
    queue = "default"

    def __init__(self, of: str, *, embedded: bool) -> None:
        self._of, self._embedded = of, embedded

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem(key="cluster")

    def work(self, context: WorkContext, item: Item) -> Write:
        # scikit-learn takes a second to import, and no other stage needs it.
        from judging.learning.clusters import Space

        run, of = context.run, self._of
        if refused := refusal(run.project, of):
            raise ItemFailed(refused)
        wanted, known = texts(run.project, of)
        total, missing = len(wanted), 0
        embeddings = None
        if self._embedded:
            vectors = vectors_of(run)
            wanted, known = ([one for one in part if one.text in vectors] for part in (wanted, known))
            missing = total - len(wanted)
            if not wanted or (of == Cluster.Of.NEW and not known):
                raise ItemFailed("The texts have no embeddings: the calls of the endpoint failed.")
            embeddings = np.stack([vectors[one.text] for one in (*wanted, *known)])
        context.checkpoint()
        space = Space([one.text for one in (*wanted, *known)], embeddings)
        chosen, likeness = list(range(len(wanted))), {}
        if of == Cluster.Of.NEW:
            likeness = dict(space.unlike(chosen, range(len(wanted), len(wanted) + len(known))))
            chosen = list(likeness)
        context.checkpoint()
        groups = [(list(group.words), list(group.members)) for group in space.groups(chosen)]
        counts = {"clusters": len(groups), "samples": len(chosen), "read": total, "not_embedded": missing}

        def write() -> Json:
            _write(run, of, groups, wanted, likeness)
            return counts

        return write


@transaction.atomic
def _write(
    run: Run,
    of: str,
    groups: Sequence[tuple[list[str], list[int]]],
    texts: Sequence[ClusteredText],
    likeness: dict[int, float],
) -> None:
    """Replace the project's clusters of the kind by these; samples that are gone are left out."""
    Cluster.objects.filter(project=run.project_id, of=of).delete()
    there = set(Sample.objects.filter(pk__in=IdList([one.sample for one in texts])).values_list("pk", flat=True))
    for words, members in groups:
        kept = [member for member in members if texts[member].sample in there]
        if not kept:
            continue
        cluster = Cluster.objects.create(project=run.project, run=run, of=of, words=words, size=len(kept))
        ClusteredSample.objects.bulk_create(
            [
                ClusteredSample(
                    cluster=cluster, sample_id=texts[member].sample, place=place, likeness=likeness.get(member)
                )
                for place, member in enumerate(kept)
            ],
            batch_size=1_000,
        )
