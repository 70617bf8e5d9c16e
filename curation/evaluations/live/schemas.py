"""Responses about live episodes."""

from typing import Any

from ninja import Schema
from pydantic import Field

from curation.evaluations.models import Episode

Json = dict[str, Any]


class LiveScoreOut(Schema):
    """One model's episodes. Figures are null without episodes; `intervals`: Wilson, 95 %, clustered by task."""

    rank: int
    model: str = Field(examples=["tuned"])
    n: int = Field(description="Episodes that ended.")
    tasks: int
    errors: int = Field(description="Episodes whose environment or model failed; never scored.")
    mismatches: int = Field(description="Episodes of another task than the one asked for; never scored.")
    unconfirmed: int = Field(description="Episodes whose task the server does not say.")
    completion_rate: float | None
    completion_rate_without_hints: float | None
    completion_within: dict[str, float] = Field(
        description="Completed episodes of at most so many steps, as a share of all.", examples=[{"5": 0.4}]
    )
    avg_steps: float | None = Field(description="Steps of all episodes.")
    avg_steps_to_complete: float | None
    avg_max_progress: float | None
    terminal_reward: float | None
    avg_reward_per_step: float | None
    avg_episode_reward: float | None = Field(description="A summed reward can reward stalling.")
    reward_std: float | None = Field(description="Population standard deviation of the summed rewards.")
    avg_reward_completed: float | None = Field(description="Mean summed reward of the completed episodes.")
    avg_reward_not_completed: float | None
    hint_usage_rate: float | None
    format_failure_rate: float | None
    invalid_actions: int = Field(0, description="Actions that the server refused: failed steps of the model.")
    invalid_action_rate: float | None = Field(None, description="Actions that the server refused, over steps.")
    episodes_missing: int = Field(0, description="Episodes of the launch that have no result, for any reason.")
    incomplete: bool = Field(False, description="Episodes are missing: no figure equals that of another model.")
    intervals: dict[str, list[float]]


class TaskOut(Schema):
    """The description of a task."""

    ids: list[str]
    text: str
    tiers: list[str]
    sentence: str = Field(examples=['task 17 "List the queues." (warmup)'])


class TriedResetOut(Schema):
    """`text` is the observation as a model would see it, `fields` are the names in the observation."""

    key: str
    sent: Json
    asked: TaskOut
    said: TaskOut
    confirmation: str
    text: str
    fields: list[str]
    seconds: float


class MismatchOut(Schema):
    """An episode of another task than the one asked for; `sent` is what went with the reset."""

    model: str
    key: str
    asked: TaskOut
    played: TaskOut
    sent: Json


class EpisodeOut(Schema):
    id: str
    model: str
    task: str = Field(examples=["seed 3"])
    repeat: int
    played: str = Field(description="confirmed, unconfirmed, or seed where no task was asked for.")
    tier: str | None
    completed: bool
    steps: int
    max_progress: float
    terminal_reward: float
    total_reward: float
    hinted: bool
    format_failures: int
    invalid_actions: int


class EpisodeDetail(EpisodeOut):
    """`trace`: one entry a step: prompt, reply, action, format_failure, refused, hint, observation, reward, progress,
    done. A step whose action was refused has the server's error as its observation.
    `reset` are the arguments sent with the reset, `said` is the server's description of its task."""

    evaluation: str
    reset: Json
    said: Json
    trajectory: str | None = Field(description="Its trajectory, where samples were asked for.")
    description: str
    trace: list[Json]


def episode_out(episode: Episode) -> Json:
    """Needs `with_model()`."""
    return {
        "id": str(episode.pk),
        "model": episode.by.name,
        "task": episode.key,
        "repeat": episode.repeat,
        "played": episode.played,
        "tier": episode.tier or None,
        "completed": episode.completed,
        "steps": episode.steps,
        "max_progress": episode.max_progress,
        "terminal_reward": episode.terminal_reward,
        "total_reward": episode.total_reward,
        "hinted": episode.hinted,
        "format_failures": episode.format_failures,
        "invalid_actions": episode.invalid_actions,
    }


def episode_detail(episode: Episode) -> Json:
    """Needs the text too."""
    text = episode.text
    return {
        **episode_out(episode),
        "evaluation": str(episode.evaluation_id),
        "reset": text.reset,
        "said": text.said,
        "trajectory": None if episode.trajectory_id is None else str(episode.trajectory_id),
        "description": text.task,
        "trace": text.trace,
    }
