"""Pages of projects: the list of yours, a new one, and a project's general settings and rules."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from curation.projects.access import Access, principal_of, project_page
from curation.projects.models import Project, Scope
from curation.projects.pages.create import create_project
from curation.projects.pages.forms import GeneralForm, ProjectForm, SettingsForm, TomlForm
from curation.projects.pages.tabs import settings_context, whole
from curation.projects.settings.change import change_project
from curation.projects.settings.guidelines import guidelines_html
from curation.projects.settings.patch import differences, patched
from curation.projects.settings.toml_file import settings_from_toml
from curation.web.problems import Problem


@require_GET
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The caller's projects; whoever has just one is taken to its overview, unless they ask for `?all=1`."""
    rows = list(Project.objects.visible_to(principal_of(request).user))
    if len(rows) == 1 and "all" not in request.GET:
        return redirect("overview", rows[0].slug)
    return render(request, "projects/home.html", {"rows": rows, "api_path": "/api/v1/projects"})


@require_http_methods(["GET", "POST"])
@login_required
def project_new(request: HttpRequest) -> HttpResponse:
    """Anybody who is signed in may make a project and becomes its admin."""
    form = ProjectForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                project = create_project(user=principal_of(request).user, **form.cleaned_data)
            except Problem as problem:
                status = problem.status
                for error in problem.errors:
                    form.add_error(error.path, error.message)
            else:
                messages.success(request, f"Project {project.name} is made. Add a model endpoint next.")
                return redirect("settings", project.slug)
    context = {"form": form, "api_path": "/api/v1/projects", "api_method": "POST"}
    return render(request, "projects/project_new.html", context, status=status)


@require_http_methods(["GET", "POST"])
@project_page(Scope.READ)
def settings(request: HttpRequest, access: Access) -> HttpResponse:
    """Name and guidelines."""
    project = access.project
    form = GeneralForm(
        request.POST or None,
        initial={"name": project.name, "guidelines": project.guidelines, "version": project.version},
    )
    status = 200
    if request.method == "POST":
        access.require(Scope.ADMIN)
        status = 422
        if form.is_valid():
            given = form.cleaned_data
            try:
                change_project(
                    access=access,
                    name=given["name"],
                    guidelines=given["guidelines"].replace("\r\n", "\n"),
                    seen_version=given["version"],
                )
            except Problem as problem:
                status = problem.status
                form.add_error(None, problem.detail)
            else:
                messages.success(request, "Saved.")
                return redirect("settings", project.slug)
    context = settings_context(access, "general", f"/api/v1/projects/{project.slug}")
    context |= {"form": form, "guidelines": guidelines_html(project.guidelines)}
    return render(request, "projects/settings/page.html", context, status=status)


@require_POST
@project_page(Scope.ADMIN)
def guidelines_preview(request: HttpRequest, access: Access) -> HttpResponse:
    """What the Markdown in the field would look like; nothing is stored."""
    html = guidelines_html(request.POST.get("guidelines", "")[:200_000])
    return render(request, "projects/settings/_guidelines.html", {"guidelines": html})


@require_http_methods(["GET", "POST"])
@project_page(Scope.READ)
def settings_rules(request: HttpRequest, access: Access) -> HttpResponse:
    """Thresholds, panel, generation, gate, review, limits, balance: one form."""
    project = access.project
    form = SettingsForm(project.settings, request.POST or None, initial={"version": project.version})
    status = 200
    if request.method == "POST":
        access.require(Scope.ADMIN)
        status = 422
        if form.is_valid():
            seen = form.cleaned_data["version"]
            try:
                changed = change_project(access=access, settings=form.patch(), seen_version=seen)
            except Problem as problem:
                status = problem.status
                form.refuse(problem)
            else:
                messages.success(request, f"Saved; {len(changed.settings)} settings are different from before.")
                return redirect("settings-rules", project.slug)
    context = settings_context(access, "rules", f"/api/v1/projects/{project.slug}")
    context |= {"form": form, "toml_form": TomlForm()}
    return render(request, "projects/settings/rules.html", context, status=status)


@require_POST
@project_page(Scope.ADMIN)
def settings_toml(request: HttpRequest, access: Access) -> HttpResponse:
    """A TOML file: first what it would change, then, with `save` and the version that was compared, the change."""
    project = access.project
    form = TomlForm(request.POST, request.FILES)
    context = settings_context(access, "rules", f"/api/v1/projects/{project.slug}")
    status = 422
    if form.is_valid():
        text = form.cleaned_data["toml"]
        try:
            patch = settings_from_toml(text)
            if "save" in request.POST:
                seen = whole(request.POST.get("version"))
                changed = change_project(access=access, settings=patch, seen_version=0 if seen is None else seen)
                messages.success(request, f"Saved; {len(changed.settings)} settings are different from before.")
                return redirect("settings-rules", project.slug)
            context |= {"changes": differences(project.settings_json, patched(project.settings_json, patch))}
            context |= {"toml": text, "version": project.version}
            status = 200
        except Problem as problem:
            status = problem.status
            form.add_error(None, problem.detail)
    context["form"] = form
    return render(request, "projects/settings/toml.html", context, status=status)
