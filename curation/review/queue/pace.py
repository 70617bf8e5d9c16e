"""The reviewer's progress in the queue and their pace."""

from dataclasses import dataclass
from statistics import median

from django.utils import timezone

from curation.projects.access import Access
from curation.review.models import DECIDING, Decision
from curation.review.queue.take import COUNTED_UP_TO, open_count

RECENT = 20


@dataclass(frozen=True, slots=True)
class Progress:
    """`done`: samples that this reviewer decided today (UTC); `left`: undecided ones, `more` where they are not all
    counted; `pace`: median seconds per sample."""

    done: int
    left: int
    more: bool
    pace: float | None

    @property
    def total(self) -> int:
        return self.done + self.left


def progress_of(access: Access) -> Progress:
    own = Decision.objects.filter(
        reviewer=access.user, sample__project=access.project, action__in=DECIDING, batch=""
    ).not_undone()
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    seconds = own.exclude(seconds=None).order_by("-id").values_list("seconds", flat=True)[:RECENT]
    spent = [value for value in seconds if value is not None]
    left = open_count(access.project, access.user.pk)
    return Progress(
        done=own.filter(created_at__gte=today).count(),
        left=left,
        more=left >= COUNTED_UP_TO,
        pace=round(median(spent), 1) if spent else None,
    )
