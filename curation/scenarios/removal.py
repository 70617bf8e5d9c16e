"""The scenarios of a run: what rests on them, and that they go with it."""

from collections.abc import Iterable
from typing import Any

from django.db.models import F, QuerySet
from django.urls import reverse

from curation.projects.removal.rows import Rest, goes_with, rests_on
from curation.runs.models import Run
from curation.scenarios.models import GateReport, Scenario


@rests_on(Run)
def scenarios_in_use(run: Run) -> Iterable[Rest]:
    url = reverse("scenario-list", args=[run.project.slug])
    edited = Scenario.objects.filter(run=run, version__gt=1).count()
    if edited:
        yield Rest(f"Scenarios of it that were edited since: {edited}.", url)
    gated = GateReport.objects.filter(run=run, bundle_sha256=F("scenario__bundle_sha256")).exclude(scenario__run=run)
    scenarios = gated.values("scenario").distinct().count()
    if scenarios:
        yield Rest(f"Scenarios that have their status from it: {scenarios}.", url)


@goes_with(Run)
def its_scenarios(run: Run) -> Iterable[QuerySet[Any]]:
    """Scenarios with trajectories stay: those are decided meanwhile, or were refused above."""
    yield Scenario.objects.filter(run=run, trajectories=None, imported_again=False)
