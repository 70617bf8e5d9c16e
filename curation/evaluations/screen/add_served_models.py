"""A line-up: one endpoint for every model that a server lists, so that all of them can be screened side by side."""

import re
from dataclasses import dataclass, replace

from django.db import transaction

from curation.llm.endpoints.change import create_endpoint, endpoint_of, values_of
from curation.llm.endpoints.discover import models_at
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.web.problems import FieldError, Invalid

_NOT_NAME = re.compile(r"[^A-Za-z0-9_.:-]+")


@dataclass(frozen=True, slots=True)
class LineUp:
    """Names of endpoints: added now, and there already."""

    added: tuple[str, ...]
    known: tuple[str, ...]


def add_served(*, access: Access, name: str) -> LineUp:
    """Adds what the server of endpoint `name` lists; raises `Invalid` or `Unavailable` where it lists nothing."""
    access.require(Scope.ADMIN)
    pattern = endpoint_of(access.project, name)
    if not pattern.api_base:
        reason = "This endpoint has no base URL to ask."
        raise Invalid(reason, errors=[FieldError("api_base", reason)])
    served = models_at(api_base=pattern.api_base, api_key_env=pattern.api_key_env)
    provider = pattern.model.partition("/")[0]
    there = dict(Endpoint.objects.of(access.project).filter(api_base=pattern.api_base).values_list("model", "name"))
    taken = set(Endpoint.objects.of(access.project).values_list("name", flat=True))
    added, known = [], []
    with transaction.atomic():
        for model in served.models:
            full = f"{provider}/{model}"
            if full in there:
                known.append(there[full])
                continue
            own = _free_name(model, taken)
            create_endpoint(access=access, values=replace(values_of(pattern), name=own, model=full))
            taken.add(own)
            added.append(own)
    return LineUp(tuple(added), tuple(known))


def _free_name(model: str, taken: set[str]) -> str:
    """The model's own name as far as a name may hold it, with a number where it is taken."""
    plain = _NOT_NAME.sub("-", model).strip("-._:")[:56] or "model"
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name
