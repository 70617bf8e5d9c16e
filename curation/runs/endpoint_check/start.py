"""Test a model endpoint: start a run of kind `test`, wait a little for its end, and apply its findings to the
endpoint.
"""

import time

from django.db import connection

from curation.llm.endpoints.resource import endpoints
from curation.llm.endpoints.schemas import EndpointPatch
from curation.llm.endpoints.settings_endpoints import endpoint_of
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.projects.settings.patch import Json
from curation.runs.launch import launch
from curation.runs.models import ENDED, Run
from curation.web.problems import Conflict

WAIT_SECONDS = 10.0
LOOK_SECONDS = 0.1


def try_endpoint(*, access: Access, name: str, wait_seconds: float | None = None) -> Run:
    """Return the run when it has ended or `wait_seconds` (default `WAIT_SECONDS`) are over."""
    access.require(Scope.RUN)
    endpoint_of(access.project, name)
    return wait_for(launch(project=access.project, kind="test", params={"model": name}, user=access.user), wait_seconds)


def wait_for(run: Run, wait_seconds: float | None = None) -> Run:
    """Return the run when it has ended, or as it is after `wait_seconds` (default `WAIT_SECONDS`).

    Inside a transaction no worker can see the run yet, so it returns at once.
    """
    deadline = time.monotonic() + (WAIT_SECONDS if wait_seconds is None else wait_seconds)
    while run.state not in ENDED and not connection.in_atomic_block and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        run.refresh_from_db()
    return run


def last_trial(project: Project, name: str) -> Run | None:
    return Run.objects.of(project).filter(kind="test", params__model=name).order_by("-id").first()


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
