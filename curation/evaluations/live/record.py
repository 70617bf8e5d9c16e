"""An episode as it is kept, whatever environment it was played in."""

from collections.abc import Sequence
from dataclasses import dataclass

from curation.evaluations.models import Episode, EpisodeText, EvaluatedModel
from curation.runs.kinds import Json, Write
from curation.runs.models import Item
from curation.web.text.storable import storable, storable_json
from sandbox.agent.action import FormatError, read_action
from sandbox.agent.episode import Episode as ShellEpisode
from sandbox.agent.episode import Message
from sandbox.agent.live import LiveEpisode


@dataclass(frozen=True, slots=True)
class Played:
    """One episode. `trace` as `EpisodeText` keeps it."""

    task: str
    tier: str
    completed: bool
    steps: int
    max_progress: float
    total_reward: float
    terminal_reward: float
    hinted: bool
    format_failures: int
    trace: list[Json]


def from_live(episode: LiveEpisode) -> Played:
    return Played(
        task=episode.task,
        tier=episode.tier,
        completed=episode.completed,
        steps=len(episode.steps),
        max_progress=episode.max_progress,
        total_reward=episode.total_reward,
        terminal_reward=episode.terminal_reward,
        hinted=episode.hinted,
        format_failures=episode.format_failures,
        trace=[
            {
                "prompt": step.prompt,
                "reply": step.reply,
                "thinking": step.thinking,
                "action": step.action,
                "format_failure": step.format_failure,
                "hint": step.hint,
                "observation": dict(step.fields),
                "reward": step.reward,
                "progress": step.progress,
                "done": step.done,
            }
            for step in episode.steps
        ],
    )


def from_shell(episode: ShellEpisode, *, task: str) -> Played:
    """A scenario knows one reward: 1 for the right terminal and state, else 0; its progress is the same."""
    solved = float(episode.keep)
    steps = _steps(episode.exchange)
    if steps:
        steps[-1] |= {"reward": solved, "progress": solved, "done": bool(episode.terminal)}
        steps[-1]["observation"] |= _ending(episode)
    return Played(
        task=task,
        tier="",
        completed=episode.keep,
        steps=len(steps),
        max_progress=solved,
        total_reward=solved,
        terminal_reward=solved,
        hinted=False,
        format_failures=episode.format_errors,
        trace=steps,
    )


def _steps(exchange: Sequence[Message]) -> list[Json]:
    """A step for each reply: the message before it, the action read from it, and the message after, if one came."""
    steps: list[Json] = []
    for place, said in enumerate(exchange):
        if said["role"] != "assistant":
            continue
        reply, after = str(said["content"]), exchange[place + 1 : place + 2]
        try:
            action, unread = read_action(reply, finish_reason=str(said.get("finish", ""))), False
        except FormatError:
            action, unread = "", True
        steps.append(
            {
                "prompt": exchange[place - 1]["content"],
                "reply": reply,
                "thinking": said.get("thinking", ""),
                "action": action,
                "format_failure": unread,
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
    said = {"checker_passed": checker.passed, "checker_output": checker.output} if checker else {}
    return {"outcome": episode.outcome, **said}


def record_played(*, by: EvaluatedModel, item: Item, played: Played) -> Write:
    """The row of one model at one task; done again, it takes the place of what was there."""

    def write() -> Json:
        key, tier = str(item.data["task"])[:200], storable(item.data["tier"] or played.tier)[:100]
        values = {
            "evaluation_id": by.evaluation_id,
            "number": int(item.data["number"]),
            "tier": tier,
            "completed": played.completed,
            "steps": played.steps,
            "max_progress": played.max_progress,
            "total_reward": played.total_reward,
            "terminal_reward": played.terminal_reward,
            "hinted": played.hinted,
            "format_failures": played.format_failures,
        }
        row, _ = Episode.objects.update_or_create(by=by, key=key, defaults=values)
        trace = storable_json(played.trace)
        EpisodeText.objects.update_or_create(episode=row, defaults={"task": storable(played.task), "trace": trace})
        return {"episode": row.pk, "completed": played.completed, "steps": played.steps}

    return write
