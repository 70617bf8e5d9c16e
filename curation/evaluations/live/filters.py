"""The episodes of an evaluation: which of them a list or a page asks for."""

from collections.abc import Sequence
from typing import ClassVar

from curation.evaluations.models import Episode, EpisodeQuerySet, Evaluation
from curation.web.lists.params import ListParams, words


class EpisodeListParams(ListParams):
    """Comma list = OR, repeated parameters = AND."""

    sorts: ClassVar[Sequence[str]] = ("id", "-id")

    model: list[str] = []
    tier: list[str] = []
    task: list[str] = []
    completed: bool | None = None
    hinted: bool | None = None

    def apply(self, evaluation: Evaluation) -> EpisodeQuerySet:
        rows = Episode.objects.filter(evaluation=evaluation).with_model()
        for column, given in (("by__name", self.model), ("tier", self.tier), ("key", self.task)):
            for group in words(given):
                rows = rows.filter(**{f"{column}__in": group})
        if self.completed is not None:
            rows = rows.filter(completed=self.completed)
        return rows if self.hinted is None else rows.filter(hinted=self.hinted)
