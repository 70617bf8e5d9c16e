"""Pages of model endpoints."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from curation.llm.endpoints.change import change_endpoint, create_endpoint, delete_endpoint, endpoint_of
from curation.llm.endpoints.forms import EndpointForm
from curation.llm.models import Endpoint
from curation.projects.access import Access, open_to, project_page
from curation.projects.models import Scope


@require_GET
@project_page(Scope.READ)
def model_list(request: HttpRequest, access: Access) -> HttpResponse:
    context = {
        "rows": Endpoint.objects.of(access.project).select_related("pace"),
        "may_change": access.may(Scope.ADMIN),
        "may_test": access.may(Scope.RUN),
        "next_steps": open_to(access, [("Import turns", reverse("import-new", args=[access.project.slug]))]),
        "api_path": f"/api/v1/projects/{access.project.slug}/models",
    }
    return render(request, "llm/model_list.html", context)


@require_http_methods(["GET", "POST"])
@project_page(Scope.ADMIN)
def model_new(request: HttpRequest, access: Access) -> HttpResponse:
    form = EndpointForm(access.project, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            endpoint = create_endpoint(access=access, values=form.values())
            messages.success(request, f"{endpoint.name} is added. Test it before you launch a run.")
            return redirect("model-list", access.project.slug)
    context = {"form": form, "api_path": f"/api/v1/projects/{access.project.slug}/models", "api_method": "POST"}
    return render(request, "llm/model_form.html", context, status=form.status)


@require_http_methods(["GET", "POST"])
@project_page(Scope.ADMIN)
def model_edit(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    endpoint = endpoint_of(access.project, name)
    form = EndpointForm(access.project, request.POST or None, initial=EndpointForm.initial_of(endpoint))
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            seen_version = form.cleaned_data["version"] or 0
            change_endpoint(access=access, name=name, values=form.values(), seen_version=seen_version)
            messages.success(request, "Saved. New calls use it.")
            return redirect("model-list", access.project.slug)
    path = f"/api/v1/projects/{access.project.slug}/models/{endpoint.name}"
    context = {"form": form, "endpoint": endpoint, "api_path": path}
    return render(request, "llm/model_form.html", context, status=form.status)


@require_POST
@project_page(Scope.ADMIN)
def model_delete(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    delete_endpoint(access=access, name=name)
    messages.success(request, f"{name} is deleted. Recorded calls keep its name and figures.")
    return redirect("model-list", access.project.slug)
