"""The samples list as a page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.projects.access import Access, project_page
from curation.projects.models import Scope


@require_GET
@project_page(Scope.READ)
def sample_list(request: HttpRequest, access: Access) -> HttpResponse:
    return render(request, "samples/list.html", {"api_path": f"/api/v1/projects/{access.project.slug}/samples"})
