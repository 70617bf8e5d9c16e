"""Which scenarios and trajectories a run's `filter` means."""

from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.scenarios.models import Scenario, ScenarioQuerySet
from curation.scenarios.pages.filters import ScenarioFilter
from curation.trajectories.models import TrajectoryQuerySet
from curation.trajectories.pages.filters import TrajectoryFilter


def rollable_in(project: Project, given: Json) -> ScenarioQuerySet:
    """The admitted scenarios that match: only they are rolled out."""
    return ScenarioFilter.from_json(given, path="params.filter").apply(Scenario.objects.of(project).rollable())


def trajectories_in(project: Project, given: Json) -> TrajectoryQuerySet:
    return TrajectoryFilter.from_json(given, path="params.filter").apply(project)
