"""What the pages of a split and of its evaluations show of its contamination check."""

from dataclasses import dataclass

from django.urls import reverse

from curation.evaluations.models import ContaminationCheck
from judging.contamination.levels import Level


@dataclass(frozen=True, slots=True)
class LevelLine:
    label: str
    count: int
    url: str


@dataclass(frozen=True, slots=True)
class Contamination:
    """The result of a check, shown above the scores. `absent` are the levels that no row has."""

    check: ContaminationCheck
    rows: int
    contaminated: int
    levels: tuple[LevelLine, ...]
    absent: tuple[str, ...]
    url: str

    @property
    def tone(self) -> str:
        return "bad" if self.contaminated else "good"


def contamination_of(slug: str, check: ContaminationCheck | None) -> Contamination | None:
    if check is None:
        return None
    url = reverse("split-page", args=[slug, check.split_id])
    levels = tuple(
        LevelLine(level.sentence, count, f"{url}?level={level.value}")
        for level in Level
        if (count := check.counts.get(level.value, 0))
    )
    absent = tuple(level.sentence for level in Level if check.counts.get(level.value) == 0)
    return Contamination(check, check.counts.get("rows", 0), check.counts.get("contaminated", 0), levels, absent, url)
