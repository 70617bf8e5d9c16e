"""All models that were evaluated on a split, the best first."""

from dataclasses import dataclass

from curation.evaluations.compare.settings import differing_settings
from curation.evaluations.live.figures import rank_of_live
from curation.evaluations.models import EvaluatedModel, EvaluationKind, Split
from curation.evaluations.screen.figures import rank_of_screen
from curation.projects.access import Access
from curation.samples.blind import without_pending
from curation.web.ids import find

MOST = 500


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """`entries` are ranked; `mixed` if their evaluations sent different numbers of rows. `kinds` are those that the
    split was evaluated with."""

    split: Split | None
    entries: list[EvaluatedModel]
    kind: EvaluationKind = EvaluationKind.STATIC
    kinds: tuple[EvaluationKind, ...] = ()

    @property
    def mixed(self) -> bool:
        return len({entry.figures.get("n") for entry in self.entries}) > 1

    @property
    def settings(self) -> list[str]:
        """The names of the settings that the models do not share."""
        return sorted(differing_settings(self.entries))


def leaderboard(
    access: Access, split_id: str | None = None, *, kind: str | None = None, limit: int = MOST
) -> Leaderboard:
    """The models of this split, or of the one evaluated last, in static screens or else in live episodes. Those
    who review blind get no models of evaluations with pending samples. Raises `NotFound` for an unknown split."""
    splits = Split.objects.of(access.project).select_related("baseline", "live_baseline")
    if split_id:
        split: Split | None = find(splits, split_id, "split")
    else:
        split = splits.filter(evaluations__isnull=False).order_by("-evaluations__id").first()
    if split is None:
        return Leaderboard(None, [])
    entries = EvaluatedModel.objects.usable().filter(evaluation__split=split).exclude(figures={})
    entries = entries.filter(evaluation__run__archived_at=None, evaluation__run__deleting_at=None)
    entries = without_pending(access, entries, "evaluation__episodes__trajectory__sample")
    kinds = tuple(one for one in EvaluationKind if entries.filter(evaluation__kind=one).exists())
    shown = EvaluationKind(kind) if kind else next(iter(kinds), EvaluationKind.STATIC)
    of_kind = entries.filter(evaluation__kind=shown).select_related("evaluation__run")
    rank = rank_of_live if shown == EvaluationKind.LIVE else rank_of_screen
    ranked = sorted(of_kind.order_by("pk"), key=lambda entry: rank(entry.figures))
    return Leaderboard(split, ranked[:limit], shown, kinds)
