"""Pages of exports: the list."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.exports.models import Export
from curation.projects.access import Access, project_page
from curation.projects.models import Scope


@require_GET
@project_page(Scope.READ)
def export_list(request: HttpRequest, access: Access) -> HttpResponse:
    exports = Export.objects.filter(project=access.project).order_by("-id")[:50]
    api_path = f"/api/v1/projects/{access.project.slug}/exports"
    return render(request, "exports/list.html", {"exports": exports, "api_path": api_path})
