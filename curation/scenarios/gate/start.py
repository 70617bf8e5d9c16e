"""Scenarios go through the gate: a run of kind `gate` over those that a filter names."""

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.scenarios.filters import ScenarioFilter

KIND = "gate"


def start_gate(*, access: Access, wanted: ScenarioFilter, repeats: int | None = None, dry_run: bool = False) -> Run:
    """Launches it. Raises `NoSandbox` where there is nothing to run commands in, unless `dry_run`."""
    access.require(Scope.RUN)
    params: dict[str, object] = {"filter": wanted.model_dump(mode="json", exclude_defaults=True)}
    if repeats is not None:
        params["repeats"] = repeats
    if dry_run:
        params["dry_run"] = True
    return launch(project=access.project, kind=KIND, params=params, user=access.user)
