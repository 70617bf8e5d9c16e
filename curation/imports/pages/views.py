"""The import page: choose a file or source, preview it, then start the run."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from curation.imports.pages.forms import ImportForm, again_from
from curation.imports.pages.preview import preview, recognised_kind
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.launch import launch, require_scopes
from curation.runs.pages.forms import run_to_repeat

# The list that rows of a kind are shown in, as its title and the name of its URL.
LISTS = {
    "turns": ("Prompts", "prompt-list"),
    "pr_records": ("Prompts", "prompt-list"),
    "scenarios": ("Scenarios", "scenario-list"),
    "samples": ("Samples", "sample-list"),
    "eval_rows": ("Held-out splits", "split-list"),
}


@require_http_methods(["GET", "POST"])
@project_page(Scope.RUN)
def import_new(request: HttpRequest, access: Access) -> HttpResponse:
    """POST with `then=preview` shows the source's first rows and stores its file; without, it starts the import."""
    source = run_to_repeat(access.project, "import", request.GET.get("from"))
    chosen = request.POST.get("kind") or (source.params["kind"] if source else request.GET.get("kind"))
    title, view = LISTS.get(chosen or "turns", LISTS["turns"])
    context: dict[str, object] = {
        "list_title": title,
        "list_url": reverse(view, args=[access.project.slug]),
        "api_path": f"/api/v1/projects/{access.project.slug}/imports",
        "api_method": "POST",
        "source": source,
    }
    if request.method == "GET":
        initial = again_from(source) if source else {"kind": request.GET.get("kind", "")}
        context |= {"stored_file": str(initial.get("upload", "")).rsplit("/", 1)[-1]}
        return render(request, "imports/new.html", {**context, "form": ImportForm(initial=initial)})
    form = ImportForm(request.POST, request.FILES)
    if form.is_valid():
        with form.shows_problem():
            given, upload = form, form.stored(access.project)
            if upload:
                # The stored file need not be sent again, even if the import is refused.
                form = ImportForm({**request.POST.dict(), "upload": upload})
                context["stored_file"] = upload.rsplit("/", 1)[-1]
            with form.shows_problem():
                params = given.params(upload, given.cleaned_data["kind"])
                looked = request.POST.get("then") == "preview"
                if upload or looked or not params.kind:  # a source that is named need not be fetched twice
                    params = given.params(upload, recognised_kind(project=access.project, params=params))
                if not looked:
                    require_scopes(access, "import", params.model_dump())
                    run = launch(project=access.project, kind="import", params=params.model_dump(), user=access.user)
                    return redirect("run-page", access.project.slug, run.pk)
                context["preview"] = preview(project=access.project, params=params)
    return render(request, "imports/new.html", {**context, "form": form}, status=form.status)
