"""Pages of review: the queue, the page of one sample, its panel. What they show is gathered in `workspace.py`."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.queue.lease import Held, hold
from curation.review.workspace.responses import place_of, show, show_next
from curation.review.workspace.workspace import workspace_of
from curation.samples.models import Sample, Status
from curation.web.ids import find
from curation.web.problems import Conflict


@require_GET
@project_page(Scope.REVIEW)
def queue(request: HttpRequest, access: Access) -> HttpResponse:
    """Claims the next sample. Claiming by GET does no harm: the lease lapses, and a reload shows the same one."""
    return show_next(request, access, request.GET.urlencode())


@require_GET
@project_page(Scope.READ)
def sample_page(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    sample = sample_of(access, pk)
    space = workspace_of(
        access=access, sample=sample, place=place_of(request.GET), held=held_while_undecided(access, sample)
    )
    return show(request, access, space)


@require_GET
@project_page(Scope.READ)
def sample_panel(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """A summary to read beside a list; it claims nothing and keeps the blind seats."""
    sample = sample_of(access, pk)
    space = workspace_of(access=access, sample=sample, place=place_of(request.GET))
    return render(
        request, "review/workspace/_panel.html", {"space": space, "sample": sample, "project": access.project}
    )


def sample_of(access: Access, pk: int) -> Sample:
    return find(Sample.objects.of(access.project).select_related("decided_by"), str(pk), "sample")


def held_while_undecided(access: Access, sample: Sample) -> Held | None:
    """A lease on an undecided sample for whoever may decide it; None where another reviewer has it."""
    if sample.status != Status.PENDING or not access.may(Scope.REVIEW):
        return None
    try:
        return hold(access=access, sample_id=sample.pk)
    except Conflict:
        return None  # the page then says who has it
