"""Second opinions on the page of a sample: whom the caller may ask, and the requests that they may withdraw."""

from dataclasses import dataclass

from curation.assignments.models import REVIEWING, AssignedSample
from curation.projects.access import Access
from curation.projects.models import Member, Scope
from curation.review.decisions.opinions import sees_opinions
from curation.samples.models import Sample, SampleStatus


@dataclass(frozen=True, slots=True)
class AskedFor:
    """A request for a second opinion; `whom` is a username or `anybody`."""

    assignment: int
    whom: str


def colleagues_of(access: Access, sample: Sample) -> list[str]:
    """Whom the caller may ask for a second opinion on the sample; none where they may not ask."""
    settled = sample.status != SampleStatus.PENDING
    disputed = sample.disputed and sees_opinions(access)  # nobody else may know
    if disputed or (settled and sample.decided_by_id != access.user.pk and not access.may(Scope.RUN)):
        return []
    members = Member.objects.listed(access.project).filter(role__in=REVIEWING).exclude(user=access.user)
    return list(members.values_list("user__username", flat=True)[:500])


def requests_of(access: Access, sample: Sample) -> list[AskedFor]:
    """The requests for a second opinion on the sample that the caller may withdraw. One that counts has left its mark
    on the sample, so the page of another costs no query."""
    if not sample.opinions:
        return []
    rows = AssignedSample.objects.filter(sample=sample, assignment__second_opinion=True)
    if not access.may(Scope.RUN):
        rows = rows.filter(assignment__created_by=access.user)
    shown = rows.order_by("assignment_id").values_list("assignment_id", "member__user__username")
    return [AskedFor(pk, username or "anybody") for pk, username in shown]
