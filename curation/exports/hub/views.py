"""The form that pushes an export to a hub."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from curation.exports.hub.kind import NAME
from curation.exports.models import Export
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.web.ids import find
from curation.web.problems import Invalid


@require_POST
@project_page(Scope.EXPORT)
def export_push(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    export = find(Export.objects.of(access.project), pk, "export")
    params = {
        "export": str(export.pk),
        "repository": request.POST.get("repository", "").strip(),
        "private": "public" not in request.POST,
    }
    try:
        run = launch(project=access.project, kind=NAME, params=params, user=access.user)
    except Invalid as problem:
        messages.error(request, problem.detail)
        return redirect("export-page", access.project.slug, export.pk)
    return redirect("run-page", access.project.slug, run.pk)
