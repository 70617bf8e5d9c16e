"""An episode as it is kept, whatever environment it was played in."""

from dataclasses import dataclass

from curation.evaluations.models import Episode, EpisodeText, EvaluatedModel
from curation.runs.kinds import Json, Write
from curation.runs.models import Item
from curation.web.text import storable, storable_json
from sandbox.episode import Episode as ShellEpisode
from sandbox.live import LiveEpisode


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
    turns = list(episode.turns)
    actions = [(place, turn) for place, turn in enumerate(turns) if turn.kind == "action"]
    trace: list[Json] = []
    for number, (place, action) in enumerate(actions, 1):
        shown = turns[place + 1] if place + 1 < len(turns) else None
        last = number == len(actions)
        trace.append(
            {
                "prompt": turns[place - 1].text,
                "reply": action.text,
                "action": action.text,
                "format_failure": False,
                "hint": False,
                "observation": _observation(episode, shown.text if shown else "", last=last),
                "reward": solved if last else 0.0,
                "progress": solved if last else None,
                "done": last and bool(episode.terminal),
            }
        )
    return Played(
        task=task,
        tier="",
        completed=episode.keep,
        steps=len(actions) + episode.format_errors,
        max_progress=solved,
        total_reward=solved,
        terminal_reward=solved,
        hinted=False,
        format_failures=episode.format_errors,
        trace=trace,
    )


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


def _observation(episode: ShellEpisode, text: str, *, last: bool) -> Json:
    if not last:
        return {"text": text}
    checker = episode.checker
    said = {"checker_passed": checker.passed, "checker_output": checker.output} if checker else {}
    return {"text": text, "outcome": episode.outcome, **said}
