"""The import page: choose a file or source, preview it, then start the run."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.mappings import mappings
from curation.imports.pages.forms import ImportForm, again_from
from curation.imports.pages.mapping import mapping_inputs
from curation.imports.pages.preview import ImportPreview, preview, recognised_kind
from curation.imports.row_kinds import is_mapped
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
    "trajectories": ("Trajectories", "trajectory-list"),
}


@project_page(Scope.RUN, "GET", "POST")
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
        if source and (mapped := source.params.get("options", {}).get("mapping")):
            context |= _mapping_context(None, RowMapping.model_validate(mapped))
        form = ImportForm(initial=initial, project=access.project)
        return render(request, "imports/new.html", {**context, "form": form})
    form = ImportForm(request.POST, request.FILES, project=access.project)
    if form.is_valid():
        with form.shows_problem():
            given, upload = form, form.stored(access.project)
            if saved := given.cleaned_data["save_as"]:
                mappings.save(access, given.mapping_to_save(access.project))
            # The stored file need not be sent again, even if the import is refused.
            chosen = saved or given.cleaned_data["mapping"]
            values = {**request.POST.dict(), "upload": upload, "save_as": "", "mapping": chosen}
            values |= {"loaded": saved} if saved else {}
            form = ImportForm(values if upload or saved else request.POST, project=access.project)
            context["stored_file"] = upload.rsplit("/", 1)[-1]
            with form.shows_problem():
                params = given.params(upload, given.cleaned_data["kind"])
                looked = request.POST.get("then") == "preview"
                # A source that is named need not be fetched twice, and a preview shows rows that need a mapping.
                if not params.kind or (upload and not looked):
                    params = given.params(upload, recognised_kind(project=access.project, params=params))
                if not looked:
                    require_scopes(access, "import", params.model_dump())
                    run = launch(project=access.project, kind="import", params=params.model_dump(), user=access.user)
                    return redirect("run-page", access.project.slug, run.pk)
                found = preview(project=access.project, params=params)
                mapping = RowMapping.model_validate(params.options.get("mapping", {}))
                context["preview"] = found
                if is_mapped(params.kind):
                    context |= _mapping_context(found, mapping)
                values |= {"messages": mapping.messages, "loaded": chosen}
                form = ImportForm(values, project=access.project)
    if "mapping" not in context and (kept := form.kept_mapping()):
        context |= _mapping_context(None, kept)
    return render(request, "imports/new.html", {**context, "form": form}, status=form.status)


def _mapping_context(preview: ImportPreview | None, mapping: RowMapping) -> dict[str, object]:
    inputs = mapping_inputs(preview, mapping)
    words = [
        (inputs.roles, "role", "Who speaks in these roles?"),
        (inputs.outcomes, "outcome", "How did runs with these values end?"),
    ]
    return {"mapping": inputs, "mapping_words": words}
