"""Pages of model endpoints."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.llm.models import Endpoint
from curation.projects.access import Access, project_page
from curation.projects.models import Scope


@require_GET
@project_page(Scope.READ)
def model_list(request: HttpRequest, access: Access) -> HttpResponse:
    rows = Endpoint.objects.of(access.project)
    return render(
        request, "llm/model_list.html", {"rows": rows, "api_path": f"/api/v1/projects/{access.project.slug}/models"}
    )
