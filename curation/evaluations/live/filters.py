from collections.abc import Mapping, Sequence
from typing import ClassVar

from curation.evaluations.models import Episode, EpisodeQuerySet, Evaluation
from curation.web.lists.filters import Words
from curation.web.lists.params import ListParams


class EpisodeList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    lookups: ClassVar[Mapping[str, str]] = {
        **{"model": "by__name", "tier": "tier", "task": "key", "completed": "completed", "hinted": "hinted"}
    }

    model: Words = ()
    tier: Words = ()
    task: Words = ()
    completed: bool | None = None
    hinted: bool | None = None

    def rows(self, evaluation: Evaluation) -> EpisodeQuerySet:
        return self.narrow(Episode.objects.filter(evaluation=evaluation).with_model().with_sample())
