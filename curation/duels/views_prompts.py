"""Pages of prompts: the list and one prompt with its history and record."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.duels.models import Prompt
from curation.projects.access import Access, project_page
from curation.projects.models import Scope


@require_GET
@project_page(Scope.READ)
def prompt_list(request: HttpRequest, access: Access) -> HttpResponse:
    prompts = Prompt.objects.of(access.project).for_list().order_by("-id")[:50]
    api_path = f"/api/v1/projects/{access.project.slug}/prompts"
    return render(request, "duels/prompt_list.html", {"prompts": prompts, "api_path": api_path})
