"""Save an episode of a sandbox or of a server in the same form."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from curation.evaluations.models import Episode, EpisodeText, EvaluatedModel, TaskPlayed
from curation.runs.kinds import Json, Write
from curation.runs.models import Item
from curation.trajectories.rollout.server_episode import ServedEpisode, save_served_episode
from curation.web.text.storable import storable, storable_json
from sandbox.agent.action import FormatError, read_action
from sandbox.agent.episode import AgentEpisode as ShellEpisode
from sandbox.agent.episode import Message
from sandbox.agent.live import LiveEpisode
from sandbox.agent.reported_task import TaskFacts

# The fields of each step in a trace, besides its observation.
TRACED = (
    *("prompt", "reply", "thinking", "action", "format_failure", "refused"),
    *("hint", "reward", "progress", "done"),
)
FIGURES = (
    *("completed", "judged", "steps", "max_progress", "total_reward", "terminal_reward"),
    *("hinted", "format_failures", "invalid_actions"),
)


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """`figures` are by the columns `FIGURES` of an episode."""

    task: str
    tier: str
    figures: Json
    trace: list[Json]
    played: TaskPlayed
    said: TaskFacts
    live: LiveEpisode | None = None


def from_live(episode: LiveEpisode) -> PlayedEpisode:
    figures = {name: getattr(episode, name) for name in FIGURES} | {"steps": len(episode.steps)}
    trace: list[Json] = [
        {**{name: getattr(step, name) for name in TRACED}, "observation": dict(step.fields)} for step in episode.steps
    ]
    played = TaskPlayed(episode.confirmation.value)
    return PlayedEpisode(episode.task, episode.tier, figures, trace, played, episode.said, episode)


def from_shell(episode: ShellEpisode, *, task: str) -> PlayedEpisode:
    """A scenario has one reward and progress: 1 for the right terminal and state, else 0."""
    solved = float(episode.keep)
    steps = _steps(episode.exchange)
    if steps:
        steps[-1] |= {"reward": solved, "progress": solved, "done": bool(episode.terminal)}
        steps[-1]["observation"] |= _ending(episode)
    figures = {
        "completed": episode.keep,
        "judged": True,
        "steps": len(steps),
        **dict.fromkeys(("max_progress", "total_reward", "terminal_reward"), solved),
        "hinted": False,
        "format_failures": episode.format_errors,
        "invalid_actions": 0,
    }
    return PlayedEpisode(task, "", figures, steps, TaskPlayed.CONFIRMED, TaskFacts())


def _steps(exchange: Sequence[Message]) -> list[Json]:
    """A step for each reply: the message before it, its action, and the message after it, if there is one."""
    steps: list[Json] = []
    for position, message in enumerate(exchange):
        if message["role"] != "assistant":
            continue
        reply, after = str(message["content"]), exchange[position + 1 : position + 2]
        try:
            action, failed = read_action(reply, finish_reason=str(message.get("finish", ""))), False
        except FormatError:
            action, failed = "", True
        steps.append(
            {
                "prompt": exchange[position - 1]["content"],
                "reply": reply,
                "thinking": message.get("thinking", ""),
                "action": action,
                "format_failure": failed,
                "refused": False,
                "hint": False,
                "observation": {"text": str(after[0]["content"]) if after else ""},
                "reward": 0.0,
                "progress": None,
                "done": False,
            }
        )
    return steps


def _ending(episode: ShellEpisode) -> Json:
    checker = episode.checker
    result = {"checker_passed": checker.passed, "checker_output": checker.output} if checker else {}
    return {"outcome": episode.outcome, **result}


def save_episode(
    *, by: EvaluatedModel, item: Item, played: PlayedEpisode, served: ServedEpisode | None = None
) -> Write:
    """The write of one model's episode of one task; it replaces an earlier one, and its trajectory."""

    def write() -> Json:
        key, tier = str(item.data["task"])[:200], storable(item.data["tier"] or played.tier)[:100]
        values = {**played.figures, "evaluation_id": by.evaluation_id, "number": int(item.data["number"]), "tier": tier}
        values |= {"played": played.played, "played_key": digest_of(played.said)}
        row, _ = Episode.objects.update_or_create(
            by=by, key=key, repeat=int(item.data.get("repeat", 0)), defaults=values
        )
        if served is not None:
            row.trajectory = save_served_episode(served, row.trajectory)
            row.save(update_fields=["trajectory"])
        EpisodeText.objects.update_or_create(
            episode=row,
            defaults={
                "task": storable(played.task),
                "trace": storable_json(played.trace),
                "reset": item.data.get("reset", {}),
                "said": storable_json(played.said.as_json()),
            },
        )
        return {"episode": row.pk, "completed": row.completed, "steps": row.steps}

    return write


def digest_of(said: TaskFacts) -> str:
    """Equal for two episodes of the same task, empty if the server said nothing of it."""
    return hashlib.sha256(said.key.encode()).hexdigest() if said.key else ""
