"""The one filter of samples: of the page, the REST list, exports, runs and the queue (`curation.web.lists.filters`)."""

from collections.abc import Sequence
from functools import cache, reduce
from operator import or_
from typing import Annotated, ClassVar

from django.contrib.auth.models import User
from django.db import models
from pydantic import ConfigDict, Field, model_validator

from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.list.conditions import (
    FEW,
    Clause,
    HasAxis,
    IsTrajectory,
    column_in,
    column_range,
    gathered,
)
from curation.samples.list.search import Reading, best_reading, matching
from curation.samples.models import Bucket, Flag, Kind, SampleQuerySet, Status, flag_bits, with_any_flag
from curation.web.lists.filters import Axes, Groups, Moment, RowFilter, Words, ids_of, one_of
from curation.web.problems import NotFound

Score = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class SampleFilter(RowFilter):
    """Which samples; without any field all of them. Unknown keys are refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"status": "approved", "flags": ["leak", "flip"], "score_min": 66}]},
    )
    # The fields that are one of a column's values.
    columns: ClassVar[tuple[str, ...]] = ("model", "source", "repo", "action_style", "instance_id")

    bucket: Annotated[Words, one_of(Bucket.values)] = ()
    status: Annotated[Words, one_of(Status.values)] = ()
    kind: Annotated[Words, one_of(Kind.values)] = ()
    flags: Annotated[Words, one_of([flag.label for flag in Flag])] = ()
    model: Words = ()
    source: Words = ()
    repo: Words = ()
    action_style: Words = ()
    instance_id: Words = ()
    reviewer: Words = Field(default=(), description="User names of who decided.")
    run: Annotated[Words, ids_of("run")] = Field(default=(), description="Ids of the runs that scored them.")
    axes: Axes = Field(default=(), description="`axis=value` of the scenario.")
    score_min: Score | None = Field(default=None, description="From this score on, 0–100.")
    score_max: Score | None = Field(default=None, description="Up to and with this score.")
    created_after: Moment | None = Field(default=None, description="From this moment on.")
    created_before: Moment | None = Field(default=None, description="Before this moment.")
    text: str = Field(default="", max_length=500, description='Full text: words, `"a phrase"`, `-without`.')

    @model_validator(mode="after")
    def in_order(self) -> "SampleFilter":
        if self.score_min is not None and self.score_max is not None and self.score_min > self.score_max:
            raise ValueError("`score_min` lies above `score_max`")
        if self.created_after and self.created_before and self.created_after >= self.created_before:
            raise ValueError("`created_after` does not lie before `created_before`")
        return self

    def apply(self, rows: SampleQuerySet) -> SampleQuerySet:
        """The rows that match; `rows` come from `Sample.objects.of(project)`. A run of another project: `NotFound`."""
        return gathered(rows, self.clauses(rows))

    def clauses(self, rows: SampleQuerySet) -> list[Clause]:
        """The conditions one by one, for `curation.samples.list.conditions.for_page`."""
        found = [column_in(name, group) for name in self.columns for group in getattr(self, name)]
        found += [column_in("bucket", group, "score_key", "priority") for group in self.bucket]
        found += [column_in("status", group, "priority") for group in self.status]
        found += [_of_kind(group) for group in self.kind]
        found += [column_in("flags", with_any_flag(flag_bits(group))) for group in self.flags]
        found += [column_in("run_id", _run_ids(rows.project, group)) for group in self.run]
        found += [column_in("decided_by_id", _user_ids(group)) for group in self.reviewer]
        if self.axes:
            found.append(_of_axes(self.axes))
        # Rows without a score have -1 there.
        scores = {"gte": self.score_min if self.score_min is not None else 0.0, "lte": self.score_max}
        if self.score_min is not None or self.score_max is not None:
            found.append(column_range("score_key", {k: v for k, v in scores.items() if v is not None}))
        times = {"gte": self.created_after, "lt": self.created_before}
        if any(times.values()):
            found.append(column_range("created_at", {k: v for k, v in times.items() if v is not None}))
        if self.text:
            found.append(_about(self.text))
        return found


SCALARS = SampleFilter.scalars()


def _of_kind(kinds: Sequence[str]) -> Clause:
    if set(kinds) == {Kind.TRAJECTORY}:
        return Clause(
            gather=lambda rows: rows.filter(IsTrajectory(models.F("kind"))),
            walk=lambda rows: rows.filter(kind=Kind.TRAJECTORY),
            streams=frozenset({"id"}),
        )
    return Clause(gather=lambda rows: rows.filter(kind__in=kinds))


def _of_axes(groups: Groups) -> Clause:
    def gather(rows: SampleQuerySet) -> SampleQuerySet:
        rows = rows.filter(IsTrajectory(models.F("kind")))
        for group in groups:
            axes = [HasAxis(*word.split("=", 1)) for word in group]
            rows = rows.filter(reduce(or_, (models.Q(axis) for axis in axes)))
        return rows

    return Clause(gather=gather, walk=gather, streams=frozenset({"id"}), wide=True)


def _about(text: str) -> Clause:
    @cache
    def reading(using: str) -> Reading:
        return best_reading(text, few=FEW, using=using)

    return Clause(
        gather=lambda rows: matching(rows, text),
        walk=lambda rows: matching(rows, text, reading(rows.db)),
        is_few=lambda rows: reading(rows.db) is Reading.GATHER,
    )


def _run_ids(project: Project | None, ids: Sequence[str]) -> list[int]:
    if project is None:
        raise TypeError("a filter by run needs rows that come from `Sample.objects.of(project)`")
    found = list(Run.objects.of(project).filter(pk__in=[int(given) for given in ids]).values_list("pk", flat=True))
    missing = [given for given in ids if int(given) not in found]
    if missing:
        raise NotFound(f"There is no run {', '.join(missing)} in {project.slug}.")
    return found


def _user_ids(names: Sequence[str]) -> list[int]:
    """Ids of the named users; 0, which no one has, where there are none: nothing was decided by nobody."""
    return list(User.objects.filter(username__in=names).values_list("pk", flat=True)) or [0]
