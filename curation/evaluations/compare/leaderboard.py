"""All models that were evaluated on a split, the best first."""

from dataclasses import dataclass

from curation.evaluations.models import EvaluatedModel, Split
from curation.projects.models import Project
from curation.web.ids import find

MOST = 500


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """`entries` are ranked; `mixed` if their evaluations sent different numbers of rows."""

    split: Split | None
    entries: list[EvaluatedModel]

    @property
    def mixed(self) -> bool:
        return len({entry.figures.get("n") for entry in self.entries}) > 1


def leaderboard(project: Project, split_id: str | None = None, *, limit: int = MOST) -> Leaderboard:
    """The models of this split, or of the one evaluated last. Raises `NotFound` for an unknown split."""
    splits = Split.objects.of(project).select_related("baseline")
    if split_id:
        split: Split | None = find(splits, split_id, "split")
    else:
        split = splits.filter(evaluations__isnull=False).order_by("-evaluations__id").first()
    if split is None:
        return Leaderboard(None, [])
    entries = EvaluatedModel.objects.filter(evaluation__split=split, xtr__gte=0).ranked()
    entries = entries.filter(evaluation__run__archived_at=None, evaluation__run__deleting_at=None)
    return Leaderboard(split, list(entries.select_related("evaluation__run")[:limit]))
