"""Requests for a second opinion: whom the caller may ask, the requests that they may withdraw, and the withdrawal of
these and other assignments."""

from dataclasses import replace

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.urls import reverse

from curation.assignments.models import REVIEWING, AssignedSample, Assignment
from curation.notifications.notify import notify_mentioned
from curation.projects.access import Access
from curation.projects.models import Member, Project, Scope
from curation.review.decisions.findings import flag_findings
from curation.review.decisions.opinions import sees_opinions, settle_without_request
from curation.review.decisions.state import emit_decided
from curation.review.models import Decision
from curation.review.queue.lease import lock_sample
from curation.samples.models import Sample, SampleStatus


def colleagues_of(access: Access, sample: Sample) -> list[str]:
    """Whom the caller may ask for a second opinion on the sample; none where they may not ask."""
    settled = sample.status != SampleStatus.PENDING
    disputed = sample.disputed and sees_opinions(access)  # nobody else may know
    if disputed or (settled and sample.decided_by_id != access.user.pk and not access.may(Scope.RUN)):
        return []
    members = Member.objects.listed(access.project).filter(role__in=REVIEWING).exclude(user=access.user)
    return list(members.values_list("user__username", flat=True)[:500])


def requests_of(access: Access, sample: Sample) -> list[dict[str, object]]:
    """The requests for a second opinion on the sample that the caller may withdraw. One that counts has left its mark
    on the sample, so the page of another costs no query."""
    if not sample.opinions:
        return []
    rows = AssignedSample.objects.filter(sample=sample, assignment__second_opinion=True)
    if not access.may(Scope.RUN):
        rows = rows.filter(assignment__created_by=access.user)
    shown = rows.order_by("assignment_id").values_list("assignment_id", "member__user__username")
    return [{"assignment": pk, "whom": username or "anybody"} for pk, username in shown]


def withdraw_assignment(*, access: Access, assignment: Assignment) -> int:
    """Give its samples back to everybody, and return how many were undecided.

    Of a request for a second opinion, a decision that waits only for that settles its sample again. Who asked for it
    may withdraw it, as a curator may.
    """
    if not (assignment.second_opinion and assignment.created_by_id == access.user.pk and access.may(Scope.REVIEW)):
        access.require(Scope.RUN)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=access.project.pk)
        samples = Sample.objects.filter(assigned_to__assignment=assignment)
        undecided = samples.filter(status=SampleStatus.PENDING).distinct().count()
        elsewhere = AssignedSample.objects.filter(sample=OuterRef("pk")).exclude(assignment=assignment)
        alone = samples.filter(~Exists(elsewhere)).values("pk")
        Sample.objects.filter(pk__in=alone).update(assigned=False)
        asked_elsewhere = elsewhere.filter(assignment__second_opinion=True)
        asked = list(samples.filter(~Exists(asked_elsewhere)).values_list("pk", flat=True).distinct())
        requested = asked if assignment.second_opinion else []
        pk = str(assignment.pk)
        assignment.delete()
        settled = [line for sample in requested if (line := _settle(access, sample)) is not None]
        emit_decided(access.project, settled)
        access.record(
            "assignment.delete",
            pk,
            {"undecided": undecided} | ({"settled": [line.pk for line in settled]} if settled else {}),
        )
    return undecided - len(settled)


def _settle(access: Access, sample_id: int) -> Decision | None:
    sample = lock_sample(access.project, sample_id)
    line = settle_without_request(sample, access.project.settings.review)
    if line is None:
        return None
    flag_findings(sample)
    # Whom the decision mentions was not told while it waited.
    link = reverse("sample-page", args=[access.project.slug, sample.pk])
    said, author = f"{line.reason}\n{line.comment}", replace(access, user=line.reviewer)
    notify_mentioned(access=author, text=said, about=f"sample {sample.pk}", link=link, once_since=line.created_at)
    return line
