from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar

from django.db.models import QuerySet
from pydantic import Field, model_validator

from curation.duels.judge.reading_filter import PARTS, READINGS, controls_of, duels_where
from curation.duels.models import Duel, DuelQuerySet, Opponent, Verdict
from curation.duels.pages.queries import shown_to
from curation.duels.score.panels import dimensions_of
from curation.projects.access import Access
from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.blind import record_unblinding
from curation.samples.models import Bucket, Flag, flag_bits, with_any_flag
from curation.web.ids import IdList, find
from curation.web.lists.clauses import Clause, column_in, column_range
from curation.web.lists.filters import ListParams, Moment, Words, ids_of, named_list, one_of
from curation.web.lists.keyset import KeysetPage
from curation.web.problems import Problem

ABOUT_READINGS = "; ".join(f"`{word}`: {about}" for word, about in READINGS.items())
ABOUT_PARTS = "; ".join(f"`{word}`: {about}" for word, about in PARTS.items())


@named_list("duels", page="duel-list")
class DuelList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id", "-score", "score")
    # A duel without a score is sorted below all others.
    sort_columns: ClassVar[Mapping[str, str]] = {"score": "score_key"}
    lookups: ClassVar[Mapping[str, str]] = {
        "opponent": "opponent",
        "panel": "counting__panel__digest",
        "instance_id": "prompt__instance_id",
        "created_after": "created_at__gte",
    }

    labels: ClassVar[Mapping[str, str]] = {
        "flags": "Flags",
        "instance_id": "Instance",
        "panel": "Panel",
        "run": "Run",
        "judge": "Judge",
        "said": "Said",
        "dimension": "Dimension",
        "part": "Part of the run",
        "control": "Control duels",
        "score_min": "Score from",
        "score_max": "Score to",
        "score_below": "Score below",
        "created_after": "Created from",
    }
    # Conditions that mean nothing without another.
    dependents: ClassVar[Mapping[str, Sequence[str]]] = {
        "run": ("judge", "said", "dimension", "part"),
        "judge": ("said", "dimension", "part"),
    }

    bucket: Annotated[Words, one_of(Bucket.values)] = ()
    flags: Annotated[Words, one_of([flag.label for flag in Flag])] = ()
    opponent: Annotated[Words, one_of(Opponent.values)] = ()
    instance_id: Words = ()
    panel: Words = Field((), description="Ids of panels: one of them gave the score that counts.")
    run: str | None = Field(
        None, description="The duels that this run scored, with its scores; bucket, flags and score are then the run's."
    )
    judge: str | None = Field(None, description="Duels that this judge of the run read; needs `run`.")
    said: str | None = Field(None, description=f"What the judge said: {ABOUT_READINGS}.")
    dimension: str | None = Field(None, description="Narrows what a judge said to one dimension.")
    part: str | None = Field(None, description=f"Narrows what a judge said to a part of the run: {ABOUT_PARTS}.")
    control: bool | None = Field(None, description="Control duels, whose outcome is known, instead of the others.")
    score_min: float | None = None
    score_max: float | None = None
    score_below: float | None = Field(None, description="Below this score.")
    created_after: Moment | None = None

    def shown(self, access: Access, columns: Callable[[DuelQuerySet], DuelQuerySet]) -> KeysetPage[Duel]:
        """A page of the project's duels that match. The log notes that the caller looked. A run of another project:
        `NotFound`."""
        rows = shown_to(access, self._of(access.project))
        page = (
            self.page(columns(self.narrow(rows))) if self._of_run else self.read(rows, self._clauses(), columns=columns)
        )
        record_unblinding(access, [duel.sample_id for duel in page.rows])
        return page

    def _of(self, project: Project) -> DuelQuerySet:
        rows = Duel.everything.exclude(control="") if self.control else Duel.objects.all()
        duels = rows.of(project)
        run = None if self.run is None else find(Run.objects.of(project), self.run, "run")
        if run is not None and self.dimension is not None and self.dimension not in (names := dimensions_of(run)):
            detail = f"`dimension` is one of {', '.join(names)} in run {run.pk}."
            raise Problem.at("dimension", detail, code="bad_filter")
        if run is not None and self.judge is not None:
            read = duels_where(run, self.judge, self.said, self.dimension, self.part, controls=bool(self.control))
            duels = duels.filter(pk__in=IdList(read))
        elif run is not None and self.control:
            duels = duels.filter(pk__in=IdList(controls_of(run)))
        if run is None or self.control:
            return duels
        duels = duels.scored_by(run)
        for name, group in self._groups():
            duels = duels.filter(**{f"ran__{name}__in": group})
        return duels.filter(**{f"ran__score_key__{bound}": value for bound, value in self._bounds().items()})

    def _clauses(self) -> list[Clause]:
        found = [column_in(name, group) for name, group in self._groups()]
        bounds = self._bounds()
        return [*found, column_range("score_key", bounds)] if bounds else found

    def _groups(self) -> list[tuple[str, Sequence[str | int]]]:
        flags = [("flags", with_any_flag(flag_bits(group))) for group in self.flags]
        return [*(("bucket", group) for group in self.bucket), *flags]

    def _bounds(self) -> dict[str, float]:
        """A duel without a score has -1 there."""
        given = {"lte": self.score_max, "lt": self.score_below}
        bounds = {bound: value for bound, value in given.items() if value is not None}
        return {"gte": max(0.0, self.score_min or 0.0), **bounds} if bounds or self.score_min is not None else {}

    def url_without(self, path: str, position: int) -> str:
        name, _ = self.pairs()[position]
        if name not in self.dependents:
            return super().url_without(path, position)
        return self.url(path, **dict.fromkeys((name, *self.dependents[name])))

    def order(self) -> str:
        column = super().order()
        return column.replace("score_key", "ran_key") if self._of_run else column

    @property
    def _of_run(self) -> bool:
        """Whether the rows have the score of a run; control duels have none."""
        return self.run is not None and not self.control

    @model_validator(mode="after")
    def known_words(self) -> "DuelList":
        if self.said is not None and self.said not in READINGS:
            raise ValueError(f"`said` is one of {', '.join(READINGS)}")
        if self.part is not None and self.part not in PARTS:
            raise ValueError(f"`part` is one of {', '.join(PARTS)}")
        if self.judge is None and (self.said or self.dimension or self.part):
            raise ValueError("`said`, `dimension` and `part` are about one judge: give `judge` too")
        if self.judge is not None and self.run is None:
            raise ValueError("a judge is shown within one run: give `run` too")
        return self


class VerdictList(ListParams):
    """Verdicts of all runs, also those whose duel has another score since."""

    lookups: ClassVar[Mapping[str, str]] = {
        "run": "run_id",
        "duel": "duel_id",
        "sample": "duel__sample_id",
        "judge": "judge",
        "parsed": "parsed",
        "created_after": "created_at__gte",
        "created_before": "created_at__lt",
    }

    run: Annotated[Words, ids_of("run")] = ()
    duel: Annotated[Words, ids_of("duel")] = ()
    sample: Annotated[Words, ids_of("sample")] = ()
    judge: Words = Field((), description="Names of endpoints.")
    parsed: bool | None = None
    control: bool = Field(
        False, description="Verdicts on control duels, whose outcome is known, instead of the others."
    )
    created_after: Moment | None = Field(None, description="From this moment on.")
    created_before: Moment | None = Field(None, description="Before this moment.")

    def rows(self, project: Project) -> QuerySet[Verdict]:
        verdicts = Verdict.objects.filter(duel__project=project).select_related("duel")
        return self.narrow(verdicts.exclude(duel__control="") if self.control else verdicts.filter(duel__control=""))
