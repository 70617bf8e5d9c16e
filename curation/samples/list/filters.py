"""The filter of samples: of the page, the REST list, exports, runs and the queue."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from itertools import chain
from operator import or_
from typing import Annotated, Any, ClassVar

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Exists, OuterRef, Q
from pydantic import ConfigDict, Field, model_validator

from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.list.conditions import HasAxis, HasOpinions, IsTrajectory
from curation.samples.list.search import MatchReading, best_reading, matching
from curation.samples.list.similar import similar_samples
from curation.samples.models import (
    Bucket,
    Flag,
    Sample,
    SampleKind,
    SampleQuerySet,
    SampleStatus,
    Unblinding,
    flag_bits,
    with_any_flag,
)
from curation.web.ids import known_ids
from curation.web.lists.clauses import FEW, Clause, all_matching, column_in, column_range
from curation.web.lists.filters import YES_NO, Axes, Groups, ListParams, Moment, RowFilter, Words, ids_of, one_of

# `curation.review.models.DECIDING`.
DECIDING = ("approve", "reject", "refine")
# `curation.duels.models.Opponent`.
OPPONENTS = ("king", "reference", "none")
Score = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class SampleFilter(RowFilter):
    """Which samples; an empty filter matches all. Unknown fields are refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"status": "approved", "flags": ["leak", "flip"], "score_min": 66}]},
    )
    labels: ClassVar[Mapping[str, str]] = {
        "text": "Text",
        "bucket": "Bucket",
        "status": "Status",
        "flags": "Flags",
        "kind": "Kind",
        "score_min": "Score from",
        "score_max": "Score to",
        "score_below": "Score below",
        "predicted_min": "Predicted from",
        "predicted_max": "Predicted to",
        "cluster": "Cluster",
        "repo": "Repository",
        "source": "Source",
        "instance_id": "Instance",
        "similar": "Similar to sample",
        "model": "Model",
        "action_style": "Action style",
        "reviewer": "Reviewer",
        "decided_by": "Decided by",
        "independent": "Decided independently",
        "disputed": "Disputed",
        "guarantee": "Guarantee",
        "run": "Run",
        "panel": "Panel",
        "opponent": "Other answer",
        "axes": "Axes",
        "label": "Label",
        "created_after": "Created from",
        "created_before": "Created before",
    }
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {
        "bucket": Bucket.choices,
        "status": SampleStatus.choices,
        "flags": [(flag.label, flag.label.replace("_", " ")) for flag in Flag],
        "kind": SampleKind.choices,
        "opponent": [(word, word.capitalize()) for word in OPPONENTS],
        "independent": YES_NO,
        "disputed": YES_NO,
    }

    bucket: Annotated[Words, one_of(Bucket.values)] = ()
    status: Annotated[Words, one_of(SampleStatus.values)] = ()
    kind: Annotated[Words, one_of(SampleKind.values)] = ()
    flags: Annotated[Words, one_of([flag.label for flag in Flag])] = ()
    model: Words = ()
    source: Words = ()
    repo: Words = ()
    action_style: Words = ()
    instance_id: Words = ()
    reviewer: Words = Field(default=(), description="Usernames of the reviewers who decided.")
    guarantee: Annotated[Words, ids_of("guarantee")] = Field(
        default=(), description="Ids of guarantees under which they are approved: nobody has looked at them."
    )
    run: Annotated[Words, ids_of("run")] = Field(
        default=(), description="Ids of the runs that scored them. Bucket and score are then those that the run gave."
    )
    panel: Words = Field(default=(), description="Ids of panels: one of them gave the score that counts.")
    opponent: Annotated[Words, one_of(OPPONENTS)] = Field(
        default=(), description="The other answer of a turn's duel; `none`: imported without another answer."
    )
    disputed: bool | None = Field(
        default=None, description="Whether several people decided differently and somebody must adjudicate."
    )
    decided_by: Words = Field(
        default=(), description="Usernames of people who decided it, each without seeing the others."
    )
    independent: bool | None = Field(
        default=None, description="Whether two or more people decided it, each without seeing the others."
    )
    similar: Annotated[Words, ids_of("sample")] = Field(
        default=(), description="Ids of samples: the up to 50 whose texts are most like one of them."
    )
    cluster: Annotated[Words, ids_of("cluster")] = Field(
        default=(), description="Ids of groups of samples that are alike."
    )
    axes: Axes = Field(default=(), description="`axis=value` of the scenario.")
    label: Axes = Field(
        default=(), description="`question=answer` of decided samples; `question=*` finds any answer to it."
    )
    score_min: Score | None = Field(default=None, description="From this score, 0–100.")
    score_max: Score | None = Field(default=None, description="Up to this score, included.")
    score_below: Score | None = Field(default=None, description="Below this score.")
    predicted_min: Probability | None = Field(default=None, description="From this predicted approval, 0–1.")
    predicted_max: Probability | None = Field(
        default=None, description="Up to this predicted approval, included. Samples without one are left out."
    )
    created_after: Moment | None = Field(default=None, description="From this moment on.")
    created_before: Moment | None = Field(default=None, description="Before this moment.")
    text: str = Field(default="", max_length=500, description='Full text: words, `"a phrase"`, `-without`.')

    @model_validator(mode="after")
    def in_order(self) -> "SampleFilter":
        if self.score_min is not None and self.score_max is not None and self.score_min > self.score_max:
            raise ValueError("`score_min` is greater than `score_max`")
        low, high = self.predicted_min, self.predicted_max
        if low is not None and high is not None and low > high:
            raise ValueError("`predicted_min` is greater than `predicted_max`")
        if self.created_after and self.created_before and self.created_after >= self.created_before:
            raise ValueError("`created_after` is not before `created_before`")
        return self

    def apply(self, rows: SampleQuerySet) -> SampleQuerySet:
        """The rows that match; `rows` come from `Sample.objects.of(project)`. A run of another project: `NotFound`."""
        return all_matching(rows, self.clauses(rows))

    def clauses(self, rows: SampleQuerySet) -> list[Clause]:
        """One clause per condition, for `curation.web.lists.clauses.read_page`."""
        found = [make(group) for name, make in _CLAUSES.items() for group in getattr(self, name)]
        if self.independent is not None:
            found.append(_independent_clause(self.independent))
        if self.disputed is not None:
            found.append(_disputed_clause(self.disputed))
        for group in self.similar:
            found.append(_similar_clause(rows, group))
        if self.axes:
            found.append(_axes_clause(self.axes))
        scores = _bounds(gte=self.score_min, lte=self.score_max, lt=self.score_below)
        if scores:
            scores.setdefault("gte", 0.0)  # rows without a score have -1 there
        if self.run:
            found += [_run_clause(_run_ids(rows.project, group), self.bucket, scores) for group in self.run]
        else:
            found += [column_in("bucket", group, "score_key", "priority") for group in self.bucket]
            found += [column_range("score_key", scores)] if scores else []
        predicted = _bounds(gte=self.predicted_min, lte=self.predicted_max)
        if predicted:
            found.append(column_range("predicted_key", {"gte": 0.0, **predicted}))
        times = _bounds(gte=self.created_after, lt=self.created_before)
        if times:
            found.append(column_range("created_at", times))
        if self.text:
            found.append(_text_clause(self.text))
        return found


class SampleList(SampleFilter, ListParams):
    sorts: ClassVar[Sequence[str]] = (
        *("-id", "id", "-score", "score", "-created_at", "created_at", "priority", "-predicted", "predicted"),
    )
    sort_columns: ClassVar[Mapping[str, str]] = {"score": "score_key", "predicted": "predicted_key"}

    @property
    def scored_by(self) -> int | None:
        """The run whose scores the list shows: the only one of its filter."""
        runs = set(chain.from_iterable(self.run))
        return int(runs.pop()) if len(runs) == 1 else None

    def order(self) -> str:
        column = super().order()
        if self.scored_by is not None:
            column = column.replace("score_key", "ran_key")
        # Ids and times have the same order, but only the index of times can begin at a moment.
        return column.replace("id", "created_at") if self.created_after or self.created_before else column


def _kind_clause(kinds: Sequence[str]) -> Clause:
    if set(kinds) == {SampleKind.TRAJECTORY}:
        return Clause(
            indexed=lambda rows: rows.filter(IsTrajectory(models.F("kind"))),
            scanned=lambda rows: rows.filter(kind=SampleKind.TRAJECTORY),
            sorted_by=frozenset({"id"}),
        )
    return Clause(indexed=lambda rows: rows.filter(kind__in=kinds))


def _opinions(rows: SampleQuerySet) -> models.QuerySet[models.Model]:
    """Independent decisions (`curation.review.models.Decision`, which is above this app).

    Those made after opening hidden data are left out.
    """
    decisions = rows.model._meta.get_field("decisions").related_model
    outer = {"sample": OuterRef("sample"), "user": OuterRef("reviewer"), "created_at__lt": OuterRef("created_at")}
    found = decisions._default_manager.filter(round__gt=0, action__in=DECIDING, batch="", undone_by=None)
    found = found.exclude(Exists(Unblinding.objects.filter(**outer)))
    return found.filter(sample__project=rows.project) if rows.project else found


def _decided_clause(condition: Q) -> Clause:
    def decided(rows: SampleQuerySet) -> SampleQuerySet:
        return rows.filter(pk__in=_opinions(rows).filter(condition).values("sample_id"))

    return Clause(indexed=decided, scanned=decided)


def _independent_clause(wanted: bool) -> Clause:
    def decided(rows: SampleQuerySet) -> SampleQuerySet:
        counted = _opinions(rows).order_by().values("sample_id", "round")
        several = counted.annotate(people=models.Count("reviewer", distinct=True)).filter(people__gt=1)
        found = rows.model.objects.filter(pk__in=several.values("sample_id")).values("pk")
        return rows.filter(pk__in=found) if wanted else rows.exclude(pk__in=found)

    return Clause(indexed=decided)


def _disputed_clause(disputed: bool) -> Clause:
    if disputed:
        found = Q(HasOpinions(models.F("opinions")), disputed=True)
        return Clause(
            indexed=lambda rows: rows.filter(found),
            scanned=lambda rows: rows.filter(found),
            sorted_by=frozenset({"id"}),
        )
    return Clause(indexed=lambda rows: rows.filter(disputed=False))


def _run_clause(ids: Sequence[int], buckets: Groups, scores: Mapping[str, object]) -> Clause:
    """Samples that the runs scored, with the bucket and score that they gave; samples without a duel have their own."""
    own, given = Q(run__in=ids, duel=None), Q(duel__scores__run__in=ids)
    for group in buckets:
        own, given = own & Q(bucket__in=group), given & Q(duel__scores__bucket__in=group)
    for bound, value in scores.items():
        own &= Q(**{f"score_key__{bound}": value})
        given &= Q(**{f"duel__scores__score_key__{bound}": value})

    def matching_rows(rows: SampleQuerySet) -> SampleQuerySet:
        samples = rows.model.objects.order_by()
        return rows.filter(Q(pk__in=samples.filter(own).values("pk")) | Q(pk__in=samples.filter(given).values("pk")))

    return Clause(indexed=matching_rows, scanned=matching_rows)


def _duel_clause(column: str, values: Sequence[str]) -> Clause:
    return Clause(indexed=lambda rows: rows.filter(**{f"duel__{column}__in": values}))


def _axes_clause(groups: Groups) -> Clause:
    def with_axes(rows: SampleQuerySet) -> SampleQuerySet:
        rows = rows.filter(IsTrajectory(models.F("kind")))
        for group in groups:
            axes = [HasAxis(*word.split("=", 1)) for word in group]
            rows = rows.filter(reduce(or_, (models.Q(axis) for axis in axes)))
        return rows

    return Clause(indexed=with_axes, scanned=with_axes, sorted_by=frozenset({"id"}), wide=True)


def _guarantee_clause(ids: Sequence[str]) -> Clause:
    """Samples with a standing approval under one of the guarantees."""

    def approvals(rows: SampleQuerySet) -> Any:
        decisions: Any = rows.model._meta.get_field("decisions").related_model
        return decisions.objects.standing_approvals().filter(guarantee__in=ids)

    return Clause(
        indexed=lambda rows: rows.filter(pk__in=approvals(rows).values("sample_id")),
        scanned=lambda rows: rows.filter(Exists(approvals(rows).filter(sample=OuterRef("pk")))),
        # Counted by the approvals themselves: the samples of a list of ids are known when all ids are.
        is_few=lambda rows: approvals(rows).order_by()[: FEW + 1].count() <= FEW,
    )


def _similar_clause(rows: SampleQuerySet, ids: Sequence[str]) -> Clause:
    if rows.project is None:
        raise TypeError("a filter by likeness needs rows that come from `Sample.objects.of(project)`")
    of_project = Sample.objects.of(rows.project)
    found = {sample.pk for pk in ids for sample in similar_samples(of_project, pk)}
    return Clause(indexed=lambda rows: rows.filter(pk__in=found), scanned=lambda rows: rows.filter(pk__in=found))


def _cluster_clause(ids: Sequence[str]) -> Clause:
    def inside(rows: SampleQuerySet) -> SampleQuerySet:
        found = rows.model.objects.filter(clusters__in=[int(pk) for pk in ids]).order_by()
        return rows.filter(pk__in=found.values("pk"))

    return Clause(indexed=inside, scanned=inside)


def _label_clause(words: Sequence[str]) -> Clause:
    """Samples with one of the answers. An answer on a pending sample is nobody's to see, so it is not found."""
    pairs = [word.split("=", 1) for word in words]

    def labelled(rows: SampleQuerySet) -> SampleQuerySet:
        samples = rows.model.objects.exclude(status=SampleStatus.PENDING).order_by()
        samples = samples.filter(project=rows.project) if rows.project else samples
        by_value = Q()
        for name, value in pairs:
            if value == "*":
                any_answer = {"labels__question__name": name, "labels__current": True, "labels__value__isnull": False}
                by_value |= Q(pk__in=samples.filter(**any_answer).values("pk"))
            else:
                answer = {"label_values__question__name": name, "label_values__value": value}
                by_value |= Q(pk__in=samples.filter(**answer).values("pk"))
        return rows.filter(by_value)

    return Clause(indexed=labelled, scanned=labelled)


def _text_clause(text: str) -> Clause:
    @cache
    def reading(using: str) -> MatchReading:
        return best_reading(text, few=FEW, using=using)

    return Clause(
        indexed=lambda rows: matching(rows, text),
        scanned=lambda rows: matching(rows, text, reading(rows.db)),
        is_few=lambda rows: reading(rows.db) is MatchReading.ALL,
    )


def _run_ids(project: Project | None, ids: Sequence[str]) -> list[int]:
    if project is None:
        raise TypeError("a filter by run needs rows that come from `Sample.objects.of(project)`")
    return known_ids(Run.objects.of(project), ids, "run", where=project.slug)


def _user_ids(names: Sequence[str]) -> list[int]:
    """Ids of these users; 0, which no user has, if there are none."""
    return list(User.objects.filter(username__in=names).values_list("pk", flat=True)) or [0]


def _bounds(**given: object) -> dict[str, object]:
    return {name: value for name, value in given.items() if value is not None}


# What each group of a field's words asks for, where that needs no more than the group.
_CLAUSES: Mapping[str, Callable[[Sequence[str]], Clause]] = {
    **{name: partial(column_in, name) for name in ("model", "source", "repo", "action_style", "instance_id")},
    "status": lambda group: column_in("status", group, "priority"),
    "kind": _kind_clause,
    "flags": lambda group: column_in("flags", with_any_flag(flag_bits(group))),
    "opponent": partial(_duel_clause, "opponent"),
    "panel": partial(_duel_clause, "counting__panel__digest"),
    "reviewer": lambda group: column_in("decided_by_id", _user_ids(group)),
    "decided_by": lambda group: _decided_clause(Q(reviewer__username__in=group)),
    "guarantee": _guarantee_clause,
    "cluster": _cluster_clause,
    "label": _label_clause,
}
