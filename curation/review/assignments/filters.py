from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Count, Q

from curation.assignments.models import AssignedSample, Assignment
from curation.projects.access import Access
from curation.review.queue.reserved import not_decided
from curation.samples.models import SampleStatus
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.params import ListParams

Parts = list[tuple[str, int, int]]


class AssignmentList(ListParams):
    """Assignments, the newest first."""

    sorts = ("-id", "id")

    def rows(self, access: Access) -> KeysetPage[Assignment]:
        return self.page(Assignment.objects.filter(project=access.project).select_related("created_by"))


def parts_of(assignments: Sequence[Assignment]) -> dict[int, Parts]:
    """Of each assignment the people, by name, with how many samples they have in it and how many are left to them."""
    if not assignments:
        return {}
    rows = AssignedSample.objects.filter(assignment__in=assignments).exclude(member=None).order_by()
    open_ = Q(sample__status=SampleStatus.PENDING, sample__disputed=False)
    counted = rows.values("assignment", "member__user__username").annotate(
        n=Count("pk"), left=Count("pk", filter=open_ & not_decided())
    )
    found: dict[int, Parts] = defaultdict(list)
    columns = ("assignment", "member__user__username", "n", "left")
    for assignment, *part in counted.order_by("member__user__username").values_list(*columns):
        found[assignment].append((part[0], part[1], part[2]))
    return found
