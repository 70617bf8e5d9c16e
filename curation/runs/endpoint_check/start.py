"""Test a model endpoint: start a run of kind `test` and wait a little for its end."""

import time

from django.db import connection

from curation.llm.endpoints.named import endpoint_of
from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.runs.launch import launch
from curation.runs.models import ENDED, Run

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
