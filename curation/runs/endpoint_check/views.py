"""Fragments: the last test of an endpoint with its button, and the models that a server lists."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST

from curation.llm.endpoints.change import endpoint_of
from curation.llm.endpoints.discover import provider_of
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.endpoint_check.api import TrialOut
from curation.runs.endpoint_check.served import list_served
from curation.runs.endpoint_check.start import last_trial, try_endpoint
from curation.runs.models import ENDED
from curation.web.problems import Invalid, Problem


@require_http_methods(["GET", "POST"])
@project_page(Scope.READ)
def model_test(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    """GET shows the last test and polls while it is live; POST starts one."""
    endpoint = endpoint_of(access.project, name)
    asked = request.method == "POST"
    run = try_endpoint(access=access, name=name, wait_seconds=0) if asked else last_trial(access.project, name)
    context = {
        "endpoint": endpoint,
        "project": access.project,
        "run": run,
        "trial": TrialOut.of(run) if run and run.state in ENDED else None,
    }
    return render(request, "llm/_trial.html", context)


@require_POST
@project_page(Scope.ADMIN)
def model_served(request: HttpRequest, access: Access) -> HttpResponse:
    """The models that the server at the form's base URL lists."""
    context: dict[str, object] = {}
    api_base, api_key_env = (request.POST.get(name, "").strip() for name in ("api_base", "api_key_env"))
    try:
        if not api_base:
            raise Invalid("Enter the base URL of the server first.")
        context["provider"] = provider_of(api_base)
        context["served"] = list_served(access=access, api_base=api_base, api_key_env=api_key_env)
    except Problem as problem:
        context["error"] = problem.detail
    return render(request, "llm/_served.html", context)


urlpatterns = [
    path("p/<slug:slug>/models/served/", model_served, name="model-served"),
    path("p/<slug:slug>/models/<str:name>/test/", model_test, name="model-test"),
]
