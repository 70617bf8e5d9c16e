"""The reviewer's progress in the queue, their pace and their target."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.db.models import Count, QuerySet, Subquery
from django.utils import timezone

from curation.assignments.models import Target
from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.models import DECIDING, Decision, DecisionQuerySet
from curation.review.queue.reserved import assigned_to
from curation.review.queue.take import open_count, undecided_by, waiting_for_others
from curation.samples.models import Sample
from curation.web.database.prepared import Prepared, RowCount
from curation.web.text.figures import COUNTED_UP_TO

RECENT = 20


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """`done`: samples that this reviewer decided today (UTC); `finished`: those that anyone decided today, and those
    that wait for others; `left`: undecided ones that the queue offers, `more` where they are not all counted; `pace`:
    median seconds per sample. `assigned`: samples left that are assigned to them. `decided`: samples that they have
    decided in all, counted only for a target."""

    done: int
    finished: int
    left: int
    more: bool
    pace: float | None
    assigned: int
    target: Target | None
    decided: int

    @property
    def total(self) -> int:
        """It does not fall when others decide: their samples move from `left` to `finished`."""
        return self.finished + self.left


def own_decisions(project: Project | int, reviewer: int) -> DecisionQuerySet:
    """Single decisions of a reviewer (a user's id)."""
    rows: DecisionQuerySet = Decision.objects.filter(
        reviewer=reviewer, sample__project=project, action__in=DECIDING, batch=""
    )
    return rows.not_undone()


def pace_of(project: Project, reviewer: int) -> float | None:
    """The median seconds of a reviewer's last single decisions; one lunch break would distort the mean."""
    return _median(_recent.all(project=project.pk, reviewer=reviewer))


def median_seconds(decisions: DecisionQuerySet, last: int) -> float | None:
    """The median seconds of so many last decisions."""
    return _median(_timed(decisions)[:last])


def _timed(decisions: DecisionQuerySet) -> QuerySet[Decision, tuple[float | None]]:
    return decisions.exclude(seconds=None).order_by("-id").values_list("seconds")


def _median(rows: Iterable[tuple[float | None]]) -> float | None:
    spent = [seconds for (seconds,) in rows if seconds is not None]
    return round(median(spent), 1) if spent else None


# A page asks it for each person.
_recent = Prepared(
    lambda project, reviewer: _timed(own_decisions(project, reviewer))[:RECENT], project=int, reviewer=int
)


def start_of_day() -> datetime:
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)


def progress_of(access: Access) -> ReviewProgress:
    project, reviewer = access.project, access.user.pk
    left = open_count(project, reviewer)
    target = _target.first(project=project.pk, reviewer=reviewer)
    today = _today.first(project=project.pk, reviewer=reviewer, since=start_of_day())
    done, decided, waiting, assigned = today or (0, 0, 0, 0)
    return ReviewProgress(
        done=done or 0,
        finished=decided + waiting,
        left=left,
        more=left >= COUNTED_UP_TO,
        pace=pace_of(project, reviewer),
        assigned=assigned,
        target=target,
        decided=own_decisions(project, reviewer).values("sample").distinct().count() if target and target.total else 0,
    )


def _counts_of(project: int, reviewer: int, since: datetime) -> QuerySet[Project, tuple[int | None, int, int, int]]:
    """The samples that the reviewer decided since then, that anyone did, and the undecided ones that wait for others,
    and that are assigned to the reviewer."""
    own = own_decisions(project, reviewer).filter(created_at__gte=since).order_by().values("reviewer")
    return Project.objects.filter(pk=project).values_list(
        Subquery(own.annotate(samples=Count("sample", distinct=True)).values("samples")),
        RowCount(Sample.objects.filter(project=project, decided_at__gte=since).order_by()),
        RowCount(waiting_for_others(project, reviewer)),
        RowCount(undecided_by(assigned_to(project, reviewer), reviewer)),
    )


# Every page of the queue shows them.
_today = Prepared(_counts_of, project=int, reviewer=int, since=datetime)
_target = Prepared(
    lambda project, reviewer: Target.objects.filter(member__user=reviewer, member__project=project),
    project=int,
    reviewer=int,
)
