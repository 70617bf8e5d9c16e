"""REST calls of model endpoints. *test* and *served* launch runs and are in `curation.runs.endpoint_check.api`."""

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.llm.endpoints import schemas as s
from curation.llm.endpoints.change import change_endpoint, create_endpoint, delete_endpoint, endpoint_of
from curation.llm.models import Endpoint
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.web.http.etag import seen_version, set_etag
from curation.web.schemas import Page

router = Router(tags=["models"])


@router.get("/projects/{slug}/models", response=Page[s.EndpointOut], summary="Model endpoints")
def list_models(request: HttpRequest, slug: str, params: Query[s.EndpointList]) -> dict[str, object]:
    rows = Endpoint.objects.of(enter(request, slug, Scope.READ).project).select_related("pace")
    return params.page(rows).response(s.EndpointOut.of)


@router.post("/projects/{slug}/models", response={201: s.EndpointOut}, summary="Add a model endpoint (admins)")
def post_model(request: HttpRequest, response: HttpResponse, slug: str, body: s.EndpointIn) -> Status[s.EndpointOut]:
    """Never send the key itself: `api_key_env` names the environment variable that contains it on the workers."""
    endpoint = create_endpoint(access=enter(request, slug, Scope.ADMIN), values=body.values())
    set_etag(response, endpoint.version)
    response["Location"] = f"/api/v1/projects/{slug}/models/{endpoint.name}"
    return Status(201, s.EndpointOut.of(endpoint))


@router.get("/projects/{slug}/models/{name}", response=s.EndpointOut, summary="One model endpoint")
def get_model(request: HttpRequest, response: HttpResponse, slug: str, name: str) -> s.EndpointOut:
    endpoint = endpoint_of(enter(request, slug, Scope.READ).project, name)
    set_etag(response, endpoint.version)
    return s.EndpointOut.of(endpoint)


@router.patch("/projects/{slug}/models/{name}", response=s.EndpointOut, summary="Change a model endpoint (admins)")
def patch_model(
    request: HttpRequest, response: HttpResponse, slug: str, name: str, body: s.EndpointPatch
) -> s.EndpointOut:
    access = enter(request, slug, Scope.ADMIN)
    endpoint = endpoint_of(access.project, name)
    seen_version(request, endpoint.version)
    # The other values were read with this version, so it is checked with or without `If-Match`.
    changed = change_endpoint(access=access, name=name, values=body.onto(endpoint), seen_version=endpoint.version)
    set_etag(response, changed.version)
    return s.EndpointOut.of(changed)


@router.delete("/projects/{slug}/models/{name}", response={204: None}, summary="Delete a model endpoint (admins)")
def delete_model(request: HttpRequest, slug: str, name: str) -> Status[None]:
    """Recorded calls keep the endpoint's name and their figures."""
    access = enter(request, slug, Scope.ADMIN)
    seen_version(request, endpoint_of(access.project, name).version)
    delete_endpoint(access=access, name=name)
    return Status(204, None)
