"""How far the people of a project agree: each pair, each reviewer, each bucket, all of them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from django.db.models import Exists, OuterRef
from pydantic import Field

from curation.projects.models import Project
from curation.review.decisions.outcome import Decider
from curation.review.models import DECIDING, Action, Decision
from curation.samples.models import Bucket, Unblinding
from curation.web.lists.filters import url_query
from curation.web.schemas import out
from judging.statistics.agreement import Agreement, group_agreement, pair_agreement

# The dimensions of agreement, in words.
DIMENSIONS = {
    "outcome": "approve, reject or refine",
    "kept": "the answer that an approval keeps, where both approve",
    "both": "the outcome and the kept answer",
}


class AgreementUnit(NamedTuple):
    """A sample that two or more people decided independently."""

    bucket: str
    opinions: tuple[Decider, ...]

    @property
    def reviewers(self) -> set[str]:
        return {opinion.reviewer for opinion in self.opinions}


@out
class FigureOut:
    """`value` is null where `too_few` samples were decided by two, or only one value occurs."""

    of: str = Field(description="all, pair, reviewer or bucket", examples=["pair"])
    names: tuple[str, ...] = Field(examples=[["ada", "ben"]])
    dimension: str = Field(description="outcome, kept (answer) or both", examples=["outcome"])
    measure: str = Field(description="kappa (Cohen) or alpha (Krippendorff)", examples=["kappa"])
    query: str = Field(
        description="The list of its samples; empty for `kept`.", examples=["decided_by=ada&decided_by=ben"]
    )
    n: int = Field(examples=[42])
    same: int = Field(examples=[36])
    value: float | None = Field(examples=[0.71])
    interval: list[float] | None = Field(description="95 %", examples=[[0.52, 0.9]])
    too_few: bool = Field(examples=[False])


def units_of(project: Project) -> list[AgreementUnit]:
    """Return the samples that at least two people decided, settled or disputed, with their latest round.

    Each person's first decision in the round counts, unless they took all of theirs back: the answer to it, or a
    settled sample, may reveal the others' decisions. Not counted are decisions after the sample had been settled in the
    round, bulk decisions, which follow a filter, imported ones, and those made after opening hidden data.
    """
    before = {"sample": OuterRef("sample"), "user": OuterRef("reviewer"), "created_at__lt": OuterRef("created_at")}
    looked = Unblinding.objects.filter(**before)
    rows = Decision.objects.of(project).filter(round__gt=0, action__in=DECIDING, batch="")
    rows = rows.exclude(Exists(looked)).order_by("id")
    columns = ("sample_id", "round", "settles", "undone_by", "sample__bucket")
    first: dict[int, dict[int, dict[str, Decider]]] = defaultdict(lambda: defaultdict(dict))
    standing, settled = set[tuple[int, int, str]](), set[tuple[int, int]]()
    buckets: dict[int, str] = {}
    for row in rows.values_list(*columns, "pk", "reviewer__username", "action", "pick").iterator(chunk_size=5_000):
        sample, number, settles, undone_by, bucket, *opinion = row
        one = Decider._make(opinion)
        buckets[sample] = bucket
        if undone_by is None:
            standing.add((sample, number, one.reviewer))
        if (sample, number) not in settled:
            first[sample][number].setdefault(one.reviewer, one)
        if settles:
            settled.add((sample, number))
    units = []
    for sample, rounds in first.items():
        for number in sorted(rounds, reverse=True):
            given = [one for name, one in rounds[number].items() if (sample, number, name) in standing]
            if len(given) > 1:
                units.append(AgreementUnit(buckets[sample], tuple(given)))
                break
    return units


def figures_of(project: Project) -> list[FigureOut]:
    """Return all figures, in each dimension: Cohen's κ of pairs, Krippendorff's α of everything else."""
    units = units_of(project)
    return [figure for dimension in DIMENSIONS for figure in _figures(units, dimension)]


def _figures(units: Sequence[AgreementUnit], dimension: str) -> Iterator[FigureOut]:
    def figure(of: str, names: tuple[str, ...], measure: str, found: Agreement, query: str) -> FigureOut:
        ends = [found.interval.low, found.interval.high] if found.interval else None
        return FigureOut(of, names, dimension, measure, query, found.n, found.same, found.value, ends, found.too_few)

    def alpha(of: str, names: tuple[str, ...], included: Sequence[AgreementUnit], **query: str) -> FigureOut:
        given = [[_value(opinion, dimension) for opinion in unit.opinions] for unit in included]
        values = [[value for value in row if value is not None] for row in given]
        shown = _query(dimension, [*query.items()])
        return figure(of, names, "alpha", group_agreement(values), shown)

    yield alpha("all", (), units)
    people = sorted({opinion.reviewer for unit in units for opinion in unit.opinions})
    of_person = {name: [unit for unit in units if name in unit.reviewers] for name in people}
    for one, two in combinations(people, 2):
        both = [unit for unit in of_person[one] if two in unit.reviewers]
        if both:
            pairs = [pair for unit in both if (pair := _pair(unit, one, two, dimension)) is not None]
            query = _query(dimension, [("decided_by", one), ("decided_by", two)])
            yield figure("pair", (one, two), "kappa", pair_agreement(pairs), query)
    for name in people:
        yield alpha("reviewer", (name,), of_person[name], decided_by=name)
    for bucket in Bucket.values:
        if in_bucket := [unit for unit in units if unit.bucket == bucket]:
            yield alpha("bucket", (bucket,), in_bucket, bucket=bucket)


def _value(opinion: Decider, dimension: str) -> str | None:
    if dimension == "outcome":
        return opinion.action
    if dimension == "kept":
        return opinion.pick or "kept" if opinion.action == Action.APPROVE else None
    return f"{opinion.action} {opinion.pick}" if opinion.action == Action.APPROVE else opinion.action


def _query(dimension: str, pairs: Sequence[tuple[str, str]]) -> str:
    return "" if dimension == "kept" else url_query([*pairs, ("independent", "true")])


def _pair(unit: AgreementUnit, one: str, two: str, dimension: str) -> tuple[str, str] | None:
    by = {opinion.reviewer: _value(opinion, dimension) for opinion in unit.opinions}
    first, second = by.get(one), by.get(two)
    return None if first is None or second is None else (first, second)
