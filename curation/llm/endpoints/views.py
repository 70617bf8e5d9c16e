from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.llm.endpoints.forms import EndpointForm
from curation.llm.endpoints.resource import endpoints
from curation.projects.access import Access, open_to, project_page
from curation.projects.models import Scope


@project_page(Scope.READ, "GET")
def model_list(request: HttpRequest, access: Access) -> HttpResponse:
    context = {
        "rows": endpoints.rows(access),
        "may_change": access.may(Scope.ADMIN),
        "may_test": access.may(Scope.RUN),
        "next_steps": open_to(access, [("Import turns", reverse("import-new", args=[access.project.slug]))]),
        "api_path": f"/api/v1/projects/{access.project.slug}/models",
    }
    return render(request, "llm/model_list.html", context)


@project_page(Scope.ADMIN, "GET", "POST")
def model_new(request: HttpRequest, access: Access) -> HttpResponse:
    form = EndpointForm(access.project, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            endpoint = endpoints.create(access, form.values())
            messages.success(request, f"{endpoint.name} is added. Test it before you launch a run.")
            return redirect("model-list", access.project.slug)
    context = {"form": form, "api_path": f"/api/v1/projects/{access.project.slug}/models", "api_method": "POST"}
    return render(request, "llm/model_form.html", context, status=form.status)


@project_page(Scope.ADMIN, "GET", "POST")
def model_edit(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    endpoint = endpoints.one(access, name)
    form = EndpointForm(access.project, request.POST or None, initial=EndpointForm.initial_of(endpoint))
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            endpoints.save_seen(access, endpoint, form.values(), form.cleaned_data["version"] or 0)
            messages.success(request, "Saved. New calls use it.")
            return redirect("model-list", access.project.slug)
    path = f"/api/v1/projects/{access.project.slug}/models/{endpoint.name}"
    context = {"form": form, "endpoint": endpoint, "api_path": path}
    return render(request, "llm/model_form.html", context, status=form.status)


@project_page(Scope.ADMIN, "POST")
def model_delete(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    endpoints.delete(access, endpoints.one(access, name))
    messages.success(request, f"{name} is deleted. Recorded calls keep its name and figures.")
    return redirect("model-list", access.project.slug)
