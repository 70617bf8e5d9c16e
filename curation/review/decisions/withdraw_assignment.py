"""The withdrawal of requests for a second opinion, and of other assignments."""

from dataclasses import replace

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.urls import reverse

from curation.assignments.models import AssignedSample, Assignment
from curation.notifications.notify import notify_mentioned
from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.review.decisions.findings import flag_findings
from curation.review.decisions.opinions import settle_without_request
from curation.review.decisions.state import emit_decided
from curation.review.models import Decision
from curation.review.queue.lease import lock_sample
from curation.samples.models import Sample, SampleStatus
from curation.web.ids import lock_row


def withdraw_assignment(*, access: Access, assignment: Assignment) -> int:
    """Give its samples back to everybody, and return how many were undecided.

    Of a request for a second opinion, a decision that waits only for that settles its sample again. Who asked for it
    may withdraw it, as a curator may.
    """
    if not (assignment.second_opinion and assignment.created_by_id == access.user.pk and access.may(Scope.REVIEW)):
        access.require(Scope.RUN)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=access.project.pk)
        lock_row(assignment, "assignment")
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
