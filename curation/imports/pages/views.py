"""The import page: a file or a source, a look at it, then the run."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from curation.imports.pages.forms import ImportForm
from curation.imports.pages.preview import preview
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.web.problems import Problem


@require_http_methods(["GET", "POST"])
@project_page(Scope.RUN)
def import_new(request: HttpRequest, access: Access) -> HttpResponse:
    """POST with `then=preview` looks at the source and keeps its file; without, it starts the import."""
    context: dict[str, object] = {"api_path": f"/api/v1/projects/{access.project.slug}/imports", "api_method": "POST"}
    if request.method == "GET":
        kind = request.GET.get("kind", "turns")
        return render(request, "imports/new.html", {**context, "form": ImportForm(initial={"kind": kind})})
    form = ImportForm(request.POST, request.FILES)
    status = 422
    if form.is_valid():
        try:
            params = form.asked(access.project)
            if params.upload:
                # What is stored need not be sent again, whatever comes of it.
                kept = request.POST.copy()
                kept["upload"] = params.upload
                form = ImportForm(kept)
                form.is_valid()
                context["kept"] = params.upload.rsplit("/", 1)[-1]
            if request.POST.get("then") != "preview":
                run = launch(project=access.project, kind="import", params=params.model_dump(), user=access.user)
                return redirect("run-page", access.project.slug, run.pk)
            context["preview"] = preview(project=access.project, params=params)
            status = 200
        except Problem as problem:
            status = problem.status
            form.add_error(None, problem.detail)
    return render(request, "imports/new.html", {**context, "form": form}, status=status)
