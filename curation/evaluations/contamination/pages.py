"""The contamination check on the pages of a split and of its evaluations."""

from dataclasses import dataclass

from django.urls import reverse

from curation.evaluations.models import ContaminationCheck
from curation.exports.hygiene.held_out import said_of_short
from curation.web.text.figures import counted
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
        if self.contaminated:
            return "bad"
        return "attention" if self.gaps or self.short else "good"

    @property
    def has_paraphrases(self) -> bool:
        """Whether paraphrases were looked for."""
        return "embedded" in self.check.counts

    @property
    def short(self) -> str:
        """Say how many rows were not searched inside longer texts, or nothing."""
        return said_of_short(self.check.counts.get("whole_only", 0))

    @property
    def gaps(self) -> str:
        return gaps_of(self.check)


def gaps_of(check: ContaminationCheck) -> str:
    """Say which rows a check did not compare, or nothing. With a gap it is incomplete, and calls no row clean."""
    if not check.ready:
        return ""
    if "unread" not in check.counts:
        return "The check did not count the training rows that it could not read. Check again."
    gaps = [
        f"{counted(number, noun)} {'was' if number == 1 else 'were'} not {done}."
        for name, noun, done in (
            ("unread", "training row", "read and not compared"),
            ("not_embedded", "task", "embedded, so paraphrases may be missing"),
        )
        if (number := int(check.counts.get(name, 0)))
    ]
    return " ".join(gaps)


def contamination_of(slug: str, check: ContaminationCheck | None) -> Contamination | None:
    if check is None:
        return None
    url = reverse("split-page", args=[slug, check.split_id])
    levels = tuple(
        LevelLine(level.sentence, count, f"{url}?level={level.value}")
        for level in Level
        if (count := check.counts.get(level.value, 0))
    )
    looked_for = [level for level in Level if level != Level.PARAPHRASE or "embedded" in check.counts]
    absent = tuple(level.sentence for level in looked_for if check.counts.get(level.value) == 0)
    return Contamination(check, check.counts.get("rows", 0), check.counts.get("contaminated", 0), levels, absent, url)
