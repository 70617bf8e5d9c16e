"""Save an episode on a server as a trajectory with a sample to review, in the form of a rollout.

The orientation is the task with the server's first observation. The model's own text is its action, also where it was
no command and another one ran in its place: such an episode is never kept.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from curation.runs.models import Run
from curation.samples.models import Flag, SampleKind
from curation.samples.scores import SampleRow, trajectory_priority, upsert_samples
from curation.trajectories.models import Outcome, Trajectory, TrajectoryText
from curation.trajectories.shell import Turn, steps_of
from curation.web.text.storable import storable, storable_json
from sandbox.agent.action import loop_facts
from sandbox.agent.environment import Observation
from sandbox.agent.live import ACHIEVED, HINTS, PROGRESS, LiveEpisode, LiveStep, shown_parts

SOURCE = "environment"
NOTHING_SHOWN = "(no output)"


@dataclass(frozen=True, slots=True)
class ServedEpisode:
    """An episode with its origin. `key` and `repeat` name the task's episode, `item_key` the item that played it."""

    run: Run
    item_key: str
    environment: str
    model: str
    instructions_hash: str
    key: str
    repeat: int
    tier: str
    episode: LiveEpisode


def save_served_episode(served: ServedEpisode, existing: Trajectory | None) -> Trajectory:
    """Save the trajectory, its texts and its sample; they replace those of `existing`. Call in a transaction."""
    episode = served.episode
    outcome, turns = outcome_of(episode), turns_of(episode)
    steps = steps_of(turns)
    loops = loop_facts([str(turn["text"]) for turn in turns if turn["kind"] == "action"])
    row = Trajectory(
        pk=existing.pk if existing else None,
        project_id=served.run.project_id,
        run=served.run,
        sample_id=existing.sample_id if existing else None,
        sample_index=served.repeat,
        model=served.model,
        instructions_hash=served.instructions_hash,
        bundle_sha256=_task_hash(served),
        environment=served.environment,
        task=storable(served.key),
        item_key=served.item_key,
        axes={"tier": served.tier, "played": episode.confirmation.value, "hinted": "yes" if episode.hinted else "no"},
        outcome=outcome,
        keep=outcome == Outcome.SOLVED,
        checker_passed=episode.completed if episode.judged else None,
        steps=len(steps),
        commands=loops.commands,
        repeated_share=loops.repeated_share,
        longest_repeat=loops.longest_repeat,
        format_errors=episode.format_failures,
    )
    row.sample_id = upsert_samples([_sample_row(row, turns, looping=loops.looping)])[0].pk
    row.save()
    texts = {"steps": storable_json(steps), "checker_output": storable(_result(episode))}
    exchange = [
        message
        for step in episode.steps
        for message in (
            {"role": "user", "content": step.prompt},
            {"role": "assistant", "content": step.reply, "thinking": step.thinking},
        )
    ]
    TrajectoryText.objects.update_or_create(trajectory=row, defaults={**texts, "exchange": storable_json(exchange)})
    return row


def outcome_of(episode: LiveEpisode) -> Outcome:
    if episode.completed:
        return Outcome.FORMAT_ERROR if episode.format_failures else Outcome.SOLVED
    if not episode.judged:
        return Outcome.UNKNOWN
    return Outcome.CHECKER_FAILED if episode.steps and episode.steps[-1].done else Outcome.NO_TERMINAL


def turns_of(episode: LiveEpisode) -> list[Turn]:
    """The terminal view. The observation after an episode's last action is no turn, unless the
    step limit cut the episode off."""
    shown = _shown(episode.opening, episode.task)
    turns = [_turn("orientation", "\n\n".join(filter(None, (episode.task, shown))) or NOTHING_SHOWN)]
    for number, step in enumerate(episode.steps, 1):
        turns.append(_turn("action", step.reply.strip() if step.format_failure else step.action))
        if number < len(episode.steps) or not (step.done or episode.completed):
            turns.append(_turn("output", _shown(Observation("", step.fields), episode.task) or NOTHING_SHOWN))
    return turns


def _shown(seen: Observation, task: str) -> str:
    """The observation without the task, and without anything that an episode is scored or measured by."""
    measured = (*PROGRESS, *ACHIEVED, *HINTS)
    fields = {name: value for name, value in seen.fields.items() if name not in measured}
    return "\n".join(filter(None, shown_parts(fields, task)))


def _turn(kind: str, text: str) -> Turn:
    return {"kind": kind, "text": text}


def _result(episode: LiveEpisode) -> str:
    last: Sequence[LiveStep] = episode.steps[-1:]
    lines = [_shown(Observation("", step.fields), episode.task) for step in last]
    figures = {
        "progress": episode.max_progress,
        "last reward": episode.terminal_reward,
        "summed reward": episode.total_reward,
    }
    known = [f"{name} {value:.2f}" for name, value in figures.items() if value is not None]
    completed = ("yes" if episode.completed else "no") if episode.judged else "the server does not say"
    lines.append(", ".join([f"completed: {completed}", *known]))
    return "\n".join(filter(None, lines))


def _task_hash(served: ServedEpisode) -> str:
    """Equal for episodes of the same task. An episode whose server says nothing of its task is like no other."""
    said = served.episode.said.key or f"unconfirmed {served.run.pk} {served.item_key}"
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _sample_row(row: Trajectory, turns: Sequence[Turn], *, looping: bool) -> SampleRow:
    commands = [str(turn["text"]) for turn in turns if turn["kind"] == "action"]
    return SampleRow(
        project_id=row.project_id,
        run_id=row.run_id,
        existing_id=row.sample_id,
        kind=SampleKind.TRAJECTORY,
        score=None,
        bucket="",
        flags=int(looping * Flag.LOOP),
        priority=trajectory_priority(
            keep=row.keep, machine=False, looping=looping, passed=bool(row.checker_passed), differs=False
        ),
        source=SOURCE,
        repo="",
        instance_id=row.task,
        action_style="",
        model=row.model,
        preview="; ".join(commands),
        body="\n".join([row.task, *(str(turn["text"]) for turn in turns)]),
        texts=[str(turn["text"]) for turn in turns],
        axes=dict(row.axes),
    )
