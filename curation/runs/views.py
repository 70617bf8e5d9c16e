"""Pages of runs."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.kinds import listed_kinds
from curation.runs.models import Run
from curation.web.ids import find


@require_GET
@project_page(Scope.READ)
def run_list(request: HttpRequest, access: Access) -> HttpResponse:
    kinds = [kind.name for kind in listed_kinds()]
    runs = Run.objects.of(access.project).filter(kind__in=kinds).order_by("-id")[:50]
    return render(request, "runs/list.html", {"runs": runs, "api_path": f"/api/v1/projects/{access.project.slug}/runs"})


@require_GET
@project_page(Scope.RUN)
def run_new(request: HttpRequest, access: Access) -> HttpResponse:
    context = {"kinds": listed_kinds(), "api_path": f"/api/v1/projects/{access.project.slug}/runs"}
    return render(request, "runs/new.html", context)


@require_GET
@project_page(Scope.READ)
def run_page(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    run = find(Run.objects.of(access.project), pk, "run")
    return render(request, "runs/page.html", {"run": run, "api_path": f"/api/v1/runs/{run.pk}"})
