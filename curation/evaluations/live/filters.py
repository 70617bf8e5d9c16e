from collections.abc import Mapping, Sequence
from typing import ClassVar

from curation.evaluations.models import Episode, Evaluation
from curation.projects.access import Access
from curation.samples.blind import look_at, without_pending
from curation.web.lists.filters import ListParams, Words
from curation.web.lists.keyset import KeysetPage


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

    def shown(self, access: Access, evaluation: Evaluation) -> KeysetPage[Episode]:
        """A page of the episodes that match. An episode says how its trajectory ended, so those who review blind get
        none of a pending sample; the log notes that others looked at it."""
        rows = self.narrow(Episode.objects.filter(evaluation=evaluation).with_model().with_sample())
        page = self.page(without_pending(access, rows, "trajectory__sample"))
        look_at(access, [row.sample.pk for row in page.rows if row.sample])
        return page
