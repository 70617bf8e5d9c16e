"""Set the parameters of a model endpoint that its last test found."""

from dataclasses import replace

from curation.llm.endpoints.change import change_endpoint, endpoint_of, values_of
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.projects.settings.patch import Json
from curation.runs.endpoint_check.start import last_trial
from curation.runs.models import ENDED, Run
from curation.web.problems import Conflict


def apply_trial(*, access: Access, name: str) -> Endpoint:
    """Raises `Conflict` if the endpoint as it is now has no test that has ended."""
    access.require(Scope.ADMIN)
    endpoint = endpoint_of(access.project, name)
    run = last_trial(access.project, name)
    if run is None or run.state not in ENDED or not _is_of(run, endpoint):
        raise Conflict(f"The model endpoint {name!r} was not tested as it is now. Test it first.", code="not_tested")
    values = replace(values_of(endpoint), params={**endpoint.params, **run.result["params"]})
    return change_endpoint(access=access, name=name, values=values, seen_version=endpoint.version)


def new_params(endpoint: Endpoint, run: Run) -> dict[str, Json]:
    """Return what a test found that the endpoint's parameters do not say."""
    found = run.result["params"] if run.state in ENDED and _is_of(run, endpoint) else {}
    return {key: value for key, value in found.items() if endpoint.params.get(key) != value}


def _is_of(run: Run, endpoint: Endpoint) -> bool:
    return run.result.get("version") == endpoint.version and "params" in run.result
