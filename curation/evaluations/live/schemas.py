"""Responses about live episodes."""

from typing import Any

from ninja import Schema
from pydantic import Field

from curation.evaluations.models import Episode

Json = dict[str, Any]


class LiveScoreOut(Schema):
    """One model's episodes. Figures are null without episodes; `intervals`: Wilson, 95 %."""

    rank: int
    model: str = Field(examples=["tuned"])
    n: int = Field(description="Episodes that ended.")
    errors: int = Field(description="Episodes whose environment or model failed; never scored.")
    completion_rate: float | None
    avg_steps_to_complete: float | None
    avg_max_progress: float | None
    terminal_reward: float | None
    avg_reward_per_step: float | None
    avg_episode_reward: float | None = Field(description="A summed reward can reward stalling.")
    reward_std: float | None = Field(description="Population standard deviation of the summed rewards.")
    hint_usage_rate: float | None
    format_failure_rate: float | None
    intervals: dict[str, list[float]]


class EpisodeOut(Schema):
    id: str
    model: str
    task: str = Field(examples=["seed 3"])
    tier: str | None
    completed: bool
    steps: int
    max_progress: float
    terminal_reward: float
    total_reward: float
    hinted: bool
    format_failures: int


class EpisodeDetail(EpisodeOut):
    """`trace`: one entry a step: prompt, reply, action, format_failure, hint, observation, reward, progress, done."""

    evaluation: str
    description: str
    trace: list[Json]


class EpisodePage(Schema):
    data: list[EpisodeOut]
    next_cursor: str | None
    total: int | None = None


def episode_out(episode: Episode) -> Json:
    """Needs `with_model()`."""
    return {
        "id": str(episode.pk),
        "model": episode.by.name,
        "task": episode.key,
        "tier": episode.tier or None,
        "completed": episode.completed,
        "steps": episode.steps,
        "max_progress": episode.max_progress,
        "terminal_reward": episode.terminal_reward,
        "total_reward": episode.total_reward,
        "hinted": episode.hinted,
        "format_failures": episode.format_failures,
    }


def episode_detail(episode: Episode) -> Json:
    """Needs the text too."""
    text = episode.text
    return {
        **episode_out(episode),
        "evaluation": str(episode.evaluation_id),
        "description": text.task,
        "trace": text.trace,
    }
