"""Reads: samples and decisions by score, flags and status, counted by the database."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Case, Count, F, Func, IntegerField, Q, QuerySet, Value, When

from curation.duels.models import Duel
from curation.projects.models import Project
from curation.review.models import DECIDING, Action, Decision, Pick
from curation.samples.models import Flag, SampleStatus, flag_bits
from judging.panel.scoring import HOLDING_FLAGS

HOLDING = flag_bits(sorted(HOLDING_FLAGS))
COUNTED = HOLDING | Flag.FLIP


class ScoredCell(NamedTuple):
    """`n` samples with a score of the panel that counts, between two cuts; segment None: unparsed.

    `flags` are the bits of those that hold a sample out of `final`, and of the flip.
    """

    segment: int | None
    flags: int
    status: str
    n: int


class DecidedCell(NamedTuple):
    """`n` of them that people decided. `other`: they kept the opponent's answer or a revision."""

    segment: int | None
    flags: int
    approved: bool
    other: bool
    n: int


def scored_cells(project: Project, cuts: Sequence[float], *, lowest: float | None = None) -> list[ScoredCell]:
    """Count the samples by segment: number n has the scores from `cuts[n - 1]` to below `cuts[n]`.

    With `lowest` only those with at least that score, which reads no other rows.
    """
    duels = Duel.objects.filter(project=project, sample__isnull=False, counting__isnull=False).order_by()
    if lowest is not None:
        duels = duels.filter(score_key__gte=lowest)
    cells = duels.annotate(segment=_segment("score", cuts), seen=F("flags").bitand(COUNTED))
    return [ScoredCell(*row) for row in cells.values_list("segment", "seen", "sample__status").annotate(n=Count("pk"))]


def decided_cells(
    project: Project, cuts: Sequence[float], *, every: bool, lowest: float | None = None
) -> list[DecidedCell]:
    """Count the decisions that stand; without `every`, only single ones.

    A bulk decision follows a filter, often one by score, and an imported one was made elsewhere. Approvals under a
    guarantee are nobody's decisions.
    """
    rows = Decision.objects.of(project).standing(*DECIDING).filter(guarantee=None)
    # A sample that waits for further people is undecided, also where an earlier decision stands.
    rows = rows.filter(sample__duel__counting__isnull=False).exclude(sample__status=SampleStatus.PENDING)
    if lowest is not None:
        rows = rows.filter(sample__duel__score_key__gte=lowest)
    if not every:
        rows = rows.filter(batch="")
    other = Q(pick=Pick.KING) | Q(revision__isnull=False)
    cells = rows.annotate(
        segment=_segment("sample__duel__score", cuts),
        seen=F("sample__duel__flags").bitand(COUNTED),
        approved=_flag(Q(action=Action.APPROVE)),
        other=_flag(Q(action=Action.APPROVE) & other),
    )
    found = cells.order_by().values_list("segment", "seen", "approved", "other").annotate(n=Count("pk"))
    return [DecidedCell(segment, seen, bool(approved), bool(other), n) for segment, seen, approved, other, n in found]


def imported_scores(project: Project) -> QuerySet[Duel]:
    """The duels whose score was imported: no panel of the project gave it, and thresholds leave its bucket alone."""
    return Duel.objects.filter(project=project, sample__isnull=False, counting=None, score__isnull=False)


def _segment(score: str, cuts: Sequence[float]) -> Func:
    """As SQL: Django takes longer for a `Case` of twenty parts than the database for its rows."""
    below = " ".join(f"WHEN %(expressions)s < {float(cut)!r} THEN {number}" for number, cut in enumerate(cuts))
    whens = f"CASE WHEN %(expressions)s IS NULL THEN NULL {below} ELSE {len(cuts)} END"
    return Func(F(score), template=whens, output_field=IntegerField())


def _flag(condition: Q) -> Case:
    return Case(When(condition, then=Value(1)), default=Value(0), output_field=IntegerField())
