"""The parameters of the run kinds, and the rows that their `filter` selects."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.scenarios.filters import ScenarioFilter
from curation.scenarios.models import Scenario, ScenarioQuerySet
from curation.trajectories.filters import TrajectoryFilter
from curation.trajectories.models import TrajectoryQuerySet
from curation.web.schemas import StrictModel

MOST_ROUNDS = 6


class RolloutParams(StrictModel):
    """`model` is the operator's endpoint, `samples` the episodes per scenario; `filter` selects scenarios. With `tools`
    the operator calls functions, `bash` and the scenario's own, instead of writing a command in a fenced block. With
    `token_ids` each step keeps the ids and log-probabilities of its tokens, if the endpoint gives them.

    Timeouts are in seconds; `episode_timeout` limits the sum of an episode's commands.
    """

    model: str
    samples: Annotated[int, Field(ge=1, le=64)] = 3
    tools: bool = False
    token_ids: Annotated[bool, Field(description="Keep token ids and log-probabilities, for RL.")] = False
    max_turns: Annotated[int, Field(ge=1, le=200)] = 30
    command_timeout: Annotated[float, Field(gt=0, le=600)] = 20.0
    episode_timeout: Annotated[float, Field(gt=0, le=3600)] = 300.0
    filter: dict[str, Any] = {}


class AttackParams(StrictModel):
    """`model` attacks the checkers of the admitted scenarios that `filter` selects. What gets in goes to `teacher`, the
    gate proves the repair, and `solver` must be rewarded for honest work. Without a teacher nothing is mended. For
    Harbor tasks the reference solution is the honest work if there is no solver.

    Timeouts are in seconds; `episode_timeout` limits the sum of an episode's commands.
    """

    model: str
    teacher: Annotated[str, Field(description="The model that mends checkers. Empty: none is mended.")] = ""
    solver: Annotated[str, Field(description="The model that works honestly through mended scenarios.")] = ""
    sight: Annotated[
        Literal["both", "without", "with"], Field(description="Whether the attacker is shown the checker.")
    ] = "both"
    attempts: Annotated[int, Field(ge=1, le=64, description="Attacks on each scenario, until one gets in.")] = 3
    repairs: Annotated[int, Field(ge=0, le=5, description="How often a scenario goes to the teacher.")] = 2
    samples: Annotated[int, Field(ge=1, le=64, description="Episodes of the solver, until one is rewarded.")] = 3
    repeats: Annotated[int, Field(ge=0, le=20)] = 2
    max_turns: Annotated[int, Field(ge=1, le=200)] = 30
    command_timeout: Annotated[float, Field(gt=0, le=600)] = 20.0
    episode_timeout: Annotated[float, Field(gt=0, le=3600)] = 300.0
    filter: dict[str, Any] = {}

    @property
    def sights(self) -> tuple[str, ...]:
        return ("without", "with") if self.sight == "both" else (self.sight,)


class ReplayParams(StrictModel):
    """`filter` selects trajectories."""

    filter: dict[str, Any] = {}


class ProbeParams(StrictModel):
    """`model` is the operator that goes on; `filter` selects trajectories. `steps` are `divergences`, the first actions
    that differ between kept and rejected trajectories of a scenario, up to `per_scenario`, or `all` steps.

    After each action, up to `rounds` times `samples` rollouts go on while the comparison is undecided, and no more than
    `most_rollouts` in all. Values are alike if they differ by at most `alike_within`.
    """

    model: str
    steps: Annotated[Literal["divergences", "all"], Field(description="The steps that are compared.")] = "divergences"
    samples: Annotated[int, Field(ge=1, le=64, description="Rollouts after each action in one round.")] = 8
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS, description="Rounds for what is undecided.")] = 3
    most_rollouts: Annotated[int, Field(ge=1, le=100_000, description="Rollouts of the run in all.")] = 1000
    per_scenario: Annotated[int, Field(ge=1, le=1000, description="Divergences of one scenario.")] = 8
    alike_within: Annotated[float, Field(gt=0, le=1, description="Difference of two success rates, 0–1.")] = 0.2
    tools: bool = False
    max_turns: Annotated[int, Field(ge=1, le=200)] = 30
    command_timeout: Annotated[float, Field(gt=0, le=600)] = 20.0
    episode_timeout: Annotated[float, Field(gt=0, le=3600)] = 300.0
    filter: dict[str, Any] = {}


class ShortenParams(StrictModel):
    """`filter` selects trajectories with useless steps."""

    filter: dict[str, Any] = {}


class PairParams(StrictModel):
    """`filter` selects the trajectories that are paired, kept and rejected ones. `source` is `trajectories` for
    imported ones, paired by task, or `scenarios` for rollouts and episodes on servers."""

    source: Literal["scenarios", "trajectories"] = "scenarios"
    strategy: Literal["first_divergence", "whole_trajectory"] = "first_divergence"
    advantage: Annotated[
        Literal["any", "likely", "proven"],
        Field(description="How sure a probe must be that the chosen action is better; of first actions that differ."),
    ] = "any"
    per_scenario: Annotated[int, Field(ge=1)] | None = Field(None, description="At most so many pairs of one scenario.")
    per_divergence: Annotated[int, Field(ge=1)] | None = Field(
        None, description="At most so many pairs that part in the same state by the same actions."
    )
    filter: dict[str, Any] = {}

    @model_validator(mode="after")
    def of_first_actions(self) -> "PairParams":
        if self.advantage != "any" and (self.strategy, self.source) != ("first_divergence", "scenarios"):
            raise ValueError("`advantage` is known of first actions that differ, in rollouts")
        return self


def matching_scenarios(project: Project, given: Json) -> ScenarioQuerySet:
    """The scenarios that match a filter and are admitted; only these can be rolled out."""
    return ScenarioFilter.from_json(given, path="params.filter").apply(Scenario.objects.of(project).for_rollout())


def scenarios_to_attack(project: Project, given: Json) -> ScenarioQuerySet:
    """The admitted scenarios of both families that match a filter."""
    return ScenarioFilter.from_json(given, path="params.filter").apply(Scenario.objects.of(project).admitted())


def matching_trajectories(project: Project, given: Json) -> TrajectoryQuerySet:
    return TrajectoryFilter.from_json(given, path="params.filter").apply(project)


def trajectories_to_pair(project: Project, params: PairParams) -> TrajectoryQuerySet:
    rows = matching_trajectories(project, params.filter)
    return rows.imported() if params.source == "trajectories" else rows.made_here().played()
