"""Fragments: the last test of an endpoint with its button, and the models that a server lists."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from curation.llm.endpoints.discover import ROOTS, provider_of
from curation.llm.endpoints.named import endpoint_of
from curation.llm.models import Endpoint
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.endpoint_check.api import TrialOut
from curation.runs.endpoint_check.served import list_served
from curation.runs.endpoint_check.start import apply_trial, last_trial, new_params, try_endpoint
from curation.runs.models import ENDED, Run
from curation.web.problems import Invalid, Problem


@project_page(Scope.READ, "GET", "POST")
def model_test(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    """GET shows the last test and polls while it is live; POST starts one."""
    endpoint = endpoint_of(access.project, name)
    asked = request.method == "POST"
    run = try_endpoint(access=access, name=name, wait_seconds=0) if asked else last_trial(access.project, name)
    return _trial(request, access, endpoint, run)


def _trial(request: HttpRequest, access: Access, endpoint: Endpoint, run: Run | None) -> HttpResponse:
    context = {
        "endpoint": endpoint,
        "project": access.project,
        "run": run,
        "trial": TrialOut.of(run) if run and run.state in ENDED else None,
        "to_apply": new_params(endpoint, run) if run and access.may(Scope.ADMIN) else {},
    }
    return render(request, "llm/_trial.html", context)


@project_page(Scope.ADMIN, "POST")
def model_apply(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    """Set the parameters that the last test found."""
    apply_trial(access=access, name=name)
    return _trial(request, access, endpoint_of(access.project, name), last_trial(access.project, name))


@project_page(Scope.ADMIN, "POST")
def model_served(request: HttpRequest, access: Access) -> HttpResponse:
    """The models that the server at the form's base URL lists."""
    context: dict[str, object] = {}
    names = ("api_base", "api_key_env", "key_style", "api_version")
    given = {name: request.POST.get(name, "").strip() for name in names}
    try:
        if not given["api_base"]:
            raise Invalid("Enter the base URL of the server first.")
        if given["key_style"] not in ("", *ROOTS):
            raise Invalid("Choose the header of the key from the list.")
        context["provider"] = provider_of(given["api_base"])
        context["served"] = list_served(access=access, **given)
    except Problem as problem:
        context["error"] = problem.detail
    return render(request, "llm/_served.html", context)


urlpatterns = [
    path("p/<slug:slug>/models/served/", model_served, name="model-served"),
    path("p/<slug:slug>/models/<endpoint:name>/test/", model_test, name="model-test"),
    path("p/<slug:slug>/models/<endpoint:name>/apply-test/", model_apply, name="model-apply-test"),
]
