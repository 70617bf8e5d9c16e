"""The last test of an endpoint with its button, and the models that a server lists: fragments and REST calls."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from ninja import Router, Schema, Status
from pydantic import Field

from curation.llm.endpoints.discover import ROOTS, provider_of
from curation.llm.endpoints.schemas import EndpointOut
from curation.llm.endpoints.settings_endpoints import endpoint_of
from curation.llm.models import Endpoint
from curation.projects.access import Access, enter, project_page
from curation.projects.models import Scope
from curation.runs.endpoint_check.list_models import list_served
from curation.runs.endpoint_check.start import apply_trial, last_trial, new_params, try_endpoint
from curation.runs.models import ENDED, Run
from curation.runs.pages.schemas import RunOut, accepted_run
from curation.web.http.responses import set_etag
from curation.web.problems import Invalid, Problem
from curation.web.schemas import answer


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


router = Router(tags=["models"])


class TrialOut(Schema):
    """The result of the call. `cost` is a decimal string in US dollars, null if unknown."""

    ok: bool
    latency_ms: int | None = Field(None, examples=[412])
    first_token_ms: int | None = Field(None, examples=[None], description="If the endpoint's answers are streamed.")
    tokens_in: int | None = Field(None, examples=[12])
    tokens_out: int | None = Field(None, examples=[3])
    cost: str | None = Field(None, examples=["0.0000042"])
    text: str | None = Field(None, examples=["ready"])
    error: str | None = Field(None, examples=[None], description="The endpoint's own message if the call failed.")
    streams: bool | None = Field(
        None,
        examples=[True],
        description="Whether the server streams an answer, by a call of its own; null if unknown.",
    )
    takes_json_schema: bool | None = Field(
        None,
        examples=[True],
        description="Whether an answer follows a JSON schema, by a call of its own; null if unknown.",
    )
    takes_tools: bool | None = Field(
        None, examples=[True], description="Whether the model calls a tool, by a call of its own; null if unknown."
    )
    takes_max_tokens: bool | None = Field(
        None,
        examples=[True],
        description="False if the server wants `max_completion_tokens` instead; null if unknown.",
    )
    params: dict[str, bool] = Field(
        {},
        examples=[{"takes_json_schema": True, "takes_tools": True}],
        description="Parameters found by the test; `POST …/apply-test` sets them in the endpoint's `params`.",
    )
    run: str = Field(examples=["17"])

    @staticmethod
    def of(run: Run) -> "TrialOut":
        found = run.result
        if "ok" not in found:
            # The run ended without a call: it was cancelled, or its stage could not be planned.
            found = {"ok": False, "error": run.error or f"The test was {run.state}."}
        return TrialOut.model_validate({**found, "run": str(run.pk)})


@router.post(
    "/projects/{slug}/models/{endpoint:name}/test",
    response={200: TrialOut, 202: RunOut},
    summary="Small calls: latency, tokens, cost, abilities of the server, or the exact error",
)
def post_test(
    request: HttpRequest, response: HttpResponse, slug: str, name: str
) -> Status[TrialOut] | Status[dict[str, object]]:
    """A worker makes the call. The answer is 200 if it ends within 10 s, else 202 with the run and its `Location`."""
    run = try_endpoint(access=enter(request, slug, Scope.RUN), name=name)
    if run.state in ENDED:
        return Status(200, TrialOut.of(run))
    return accepted_run(response, run)


@router.post(
    "/projects/{slug}/models/{endpoint:name}/apply-test",
    response=EndpointOut,
    summary="Set the parameters that the last test found (admins)",
)
def post_apply_test(request: HttpRequest, response: HttpResponse, slug: str, name: str) -> EndpointOut:
    """409 if the endpoint as it is now has no test that has ended."""
    endpoint = apply_trial(access=enter(request, slug, Scope.ADMIN), name=name)
    set_etag(response, endpoint.version)
    return EndpointOut.model_validate(endpoint)


@router.get(
    "/projects/{slug}/models/{endpoint:name}/served",
    response=answer("ServedOut", data=Annotated[list[str], Field(examples=[["qwen2.5-coder-32b"]])]),
    summary="Models that the endpoint's server lists",
)
def get_served(request: HttpRequest, slug: str, name: str) -> dict[str, object]:
    """If the endpoint has a key, a worker asks the server, as a run; 503 if that takes longer than 10 s."""
    access = enter(request, slug, Scope.ADMIN)
    endpoint = endpoint_of(access.project, name)
    styles = {name: str(endpoint.params.get(name) or "") for name in ("key_style", "api_version")}
    found = list_served(access=access, api_base=endpoint.api_base, api_key_env=endpoint.api_key_env, **styles)
    return {"data": list(found)}
