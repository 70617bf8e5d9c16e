"""Set the parameters of a model endpoint, and the prices that it lacks, as its last test found them."""

from curation.llm.endpoints.named import endpoint_of
from curation.llm.endpoints.resource import endpoints
from curation.llm.endpoints.schemas import EndpointPatch
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
    params = {**endpoint.params, **run.result["params"]}
    found = EndpointPatch.model_validate({"params": params, **_new_prices(endpoint, run)})
    return endpoints.save_seen(access, endpoint, found, endpoint.version)


def new_params(endpoint: Endpoint, run: Run) -> dict[str, Json]:
    """Return a test's findings that the endpoint lacks: parameters, and prices per million tokens."""
    if run.state not in ENDED or not _is_of(run, endpoint):
        return {}
    found = {key: value for key, value in run.result["params"].items() if endpoint.params.get(key) != value}
    return {**found, **_new_prices(endpoint, run)}


def _new_prices(endpoint: Endpoint, run: Run) -> dict[str, str]:
    found: dict[str, str] = run.result.get("prices", {})
    return found if endpoint.price_in is None and endpoint.price_out is None else {}


def _is_of(run: Run, endpoint: Endpoint) -> bool:
    return run.result.get("version") == endpoint.version and "params" in run.result
