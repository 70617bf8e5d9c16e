"""Add an endpoint for every model that a server lists, to evaluate all of them at once."""

import re

from django.db import transaction

from curation.llm.endpoints.resource import endpoints
from curation.llm.endpoints.schemas import EndpointIn
from curation.llm.endpoints.settings_endpoints import endpoint_of
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.runs.endpoint_check.list_models import list_served
from curation.web.problems import Invalid

_NOT_NAME = re.compile(r"[^A-Za-z0-9_.:-]+")


def add_served_models(*, access: Access, name: str) -> tuple[list[str], list[str]]:
    """Add the models of the server behind endpoint `name`; raise `Invalid` or `Unavailable` if it lists none. Return
    the names of the endpoints that were added, and of those that existed before."""
    access.require(Scope.ADMIN)
    pattern = endpoint_of(access.project, name)
    if not pattern.api_base:
        raise Invalid.at("api_base", "This endpoint has no base URL.")
    served = list_served(access=access, api_base=pattern.api_base, api_key_env=pattern.api_key_env)
    provider = pattern.model.partition("/")[0]
    there = dict(Endpoint.objects.of(access.project).filter(api_base=pattern.api_base).values_list("model", "name"))
    taken = set(Endpoint.objects.of(access.project).values_list("name", flat=True))
    added: list[str] = []
    known: list[str] = []
    with transaction.atomic():
        for model in served:
            full = f"{provider}/{model}"
            if full in there:
                known.append(there[full])
                continue
            own = _free_name(model, taken)
            values = EndpointIn.model_validate(pattern).model_copy(update={"name": own, "model": full})
            endpoints.create(access, values)
            taken.add(own)
            added.append(own)
    return added, known


def _free_name(model: str, taken: set[str]) -> str:
    """The model's name in the characters an endpoint's name allows, with a number if it is taken."""
    plain = _NOT_NAME.sub("-", model).strip("-._:")[:56] or "model"
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name
