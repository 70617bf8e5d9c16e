"""Pages of review. What they show is gathered in `workspace.py`; what they change is done by the use-cases."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_POST

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.queue import open_count
from curation.samples.models import Sample


@require_GET
@project_page(Scope.REVIEW)
def queue(request: HttpRequest, access: Access) -> HttpResponse:
    return render(request, "review/queue.html", {"left": open_count(access.project)})


@require_GET
@project_page(Scope.READ)
def sample_page(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    sample = get_object_or_404(Sample.objects.of(access.project), pk=pk)
    return render(request, "review/sample_page.html", {"sample": sample})


@require_GET
@project_page(Scope.READ)
def sample_panel(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    sample = get_object_or_404(Sample.objects.of(access.project), pk=pk)
    return render(request, "review/_panel.html", {"sample": sample})


@require_POST
@project_page(Scope.REVIEW)
def sample_bulk(request: HttpRequest, access: Access) -> HttpResponse:
    return HttpResponse(status=501)


@require_POST
@project_page(Scope.REVIEW)
def sample_bulk_undo(request: HttpRequest, access: Access, batch: str) -> HttpResponse:
    return HttpResponse(status=501)
