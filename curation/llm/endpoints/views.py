"""Pages of model endpoints."""

from dataclasses import asdict

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from curation.llm.endpoints.change import change_endpoint, create_endpoint, delete_endpoint, endpoint_of, values_of
from curation.llm.endpoints.discover import models_at
from curation.llm.endpoints.forms import EndpointForm, refused
from curation.llm.models import Endpoint
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.web.problems import Problem


@require_GET
@project_page(Scope.READ)
def model_list(request: HttpRequest, access: Access) -> HttpResponse:
    context = {
        "rows": Endpoint.objects.of(access.project),
        "may_change": access.may(Scope.ADMIN),
        "may_test": access.may(Scope.RUN),
        "api_path": f"/api/v1/projects/{access.project.slug}/models",
    }
    return render(request, "llm/model_list.html", context)


@require_http_methods(["GET", "POST"])
@project_page(Scope.ADMIN)
def model_new(request: HttpRequest, access: Access) -> HttpResponse:
    form = EndpointForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                endpoint = create_endpoint(access=access, values=form.values())
            except Problem as problem:
                status, form = problem.status, refused(form, problem)
            else:
                messages.success(request, f"{endpoint.name} is added. Test it before you launch a run.")
                return redirect("model-list", access.project.slug)
    context = {"form": form, "api_path": f"/api/v1/projects/{access.project.slug}/models", "api_method": "POST"}
    return render(request, "llm/model_form.html", context, status=status)


@require_http_methods(["GET", "POST"])
@project_page(Scope.ADMIN)
def model_edit(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    endpoint = endpoint_of(access.project, name)
    form = EndpointForm(request.POST or None, initial={**asdict(values_of(endpoint)), "version": endpoint.version})
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            seen = form.cleaned_data["version"]
            try:
                change_endpoint(
                    access=access, name=name, values=form.values(), seen_version=0 if seen is None else seen
                )
            except Problem as problem:
                status, form = problem.status, refused(form, problem)
            else:
                messages.success(request, "Saved. Calls from now on use it.")
                return redirect("model-list", access.project.slug)
    path = f"/api/v1/projects/{access.project.slug}/models/{endpoint.name}"
    context = {"form": form, "endpoint": endpoint, "api_path": path}
    return render(request, "llm/model_form.html", context, status=status)


@require_POST
@project_page(Scope.ADMIN)
def model_delete(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    delete_endpoint(access=access, name=name)
    messages.success(request, f"{name} is deleted. Recorded calls keep its name and figures.")
    return redirect("model-list", access.project.slug)


@require_POST
@project_page(Scope.ADMIN)
def model_served(request: HttpRequest, access: Access) -> HttpResponse:
    """What the server behind the base URL in the form serves; nothing is stored."""
    context: dict[str, object] = {}
    try:
        served = models_at(
            api_base=request.POST.get("api_base", ""), api_key_env=request.POST.get("api_key_env", "").strip()
        )
        context["served"] = served.models
    except Problem as problem:
        context["error"] = problem.detail
    return render(request, "llm/_served.html", context)
