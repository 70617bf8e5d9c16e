"""Pages of projects: the list of yours, a new one, and the settings' general part."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from curation.projects.access import Access, principal_of, project_page
from curation.projects.models import Project, Scope


@require_GET
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The caller's projects; whoever has just one is taken to its overview."""
    rows = list(Project.objects.visible_to(principal_of(request).user))
    if len(rows) == 1 and "all" not in request.GET:
        return redirect("overview", rows[0].slug)
    return render(request, "projects/home.html", {"rows": rows, "api_path": "/api/v1/projects"})


@require_GET
@project_page(Scope.READ)
def settings(request: HttpRequest, access: Access) -> HttpResponse:
    return render(request, "projects/settings.html", {"api_path": f"/api/v1/projects/{access.project.slug}"})
