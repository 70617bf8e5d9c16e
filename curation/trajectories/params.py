"""Parameters of the run kinds around trajectories."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RolloutParams(Strict):
    """`rollout`: the operator's endpoint, episodes per scenario, and the limits of one; `filter` is of scenarios.

    `command_timeout` and `episode_timeout` in seconds; the latter bounds all commands of an episode together.
    """

    model: str
    samples: Annotated[int, Field(ge=1, le=64)] = 3
    max_turns: Annotated[int, Field(ge=1, le=200)] = 30
    command_timeout: Annotated[float, Field(gt=0, le=600)] = 20.0
    episode_timeout: Annotated[float, Field(gt=0, le=3600)] = 300.0
    filter: dict[str, Any] = {}


class ReplayParams(Strict):
    """`replay`: `filter` is of trajectories."""

    filter: dict[str, Any] = {}


class PairParams(Strict):
    """`pairs`: kept trajectories against rejected ones of the same scenario; `filter` is of both."""

    strategy: Literal["first_divergence", "whole_trajectory"] = "first_divergence"
    filter: dict[str, Any] = {}
