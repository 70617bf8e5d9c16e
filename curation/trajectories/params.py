"""The parameters of the run kinds, and the rows that their `filter` selects."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.scenarios.filters import ScenarioFilter
from curation.scenarios.models import Scenario, ScenarioQuerySet
from curation.trajectories.filters import TrajectoryFilter
from curation.trajectories.models import TrajectoryQuerySet


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RolloutParams(Strict):
    """`model` is the operator's endpoint, `samples` the episodes per scenario; `filter` selects scenarios. With `tools`
    the operator calls functions, `bash` and the scenario's own, instead of writing a command in a fenced block.

    Timeouts are in seconds; `episode_timeout` limits the sum of an episode's commands.
    """

    model: str
    samples: Annotated[int, Field(ge=1, le=64)] = 3
    tools: bool = False
    max_turns: Annotated[int, Field(ge=1, le=200)] = 30
    command_timeout: Annotated[float, Field(gt=0, le=600)] = 20.0
    episode_timeout: Annotated[float, Field(gt=0, le=3600)] = 300.0
    filter: dict[str, Any] = {}


class ReplayParams(Strict):
    """`filter` selects trajectories."""

    filter: dict[str, Any] = {}


class PairParams(Strict):
    """`filter` selects the trajectories that are paired, kept and rejected ones. `source` is `trajectories` for
    imported ones, paired by task, or `scenarios` for rollouts and episodes on servers."""

    source: Literal["scenarios", "trajectories"] = "scenarios"
    strategy: Literal["first_divergence", "whole_trajectory"] = "first_divergence"
    filter: dict[str, Any] = {}


def matching_scenarios(project: Project, given: Json) -> ScenarioQuerySet:
    """The scenarios that match a filter and are admitted; only these can be rolled out."""
    return ScenarioFilter.from_json(given, path="params.filter").apply(Scenario.objects.of(project).for_rollout())


def matching_trajectories(project: Project, given: Json) -> TrajectoryQuerySet:
    return TrajectoryFilter.from_json(given, path="params.filter").apply(project)


def trajectories_to_pair(project: Project, params: PairParams) -> TrajectoryQuerySet:
    rows = matching_trajectories(project, params.filter)
    return rows.imported() if params.source == "trajectories" else rows.made_here()
