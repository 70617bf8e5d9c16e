"""A live episode on a server elsewhere: a prompt from task and history, then one command, until done or the limit.

Each turn has a new prompt in the form that the measured models were trained on: system text, then one message with the
task, the last command's output and the commands before it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.agent.environment import Environment, Observation
from sandbox.agent.episode import Complete
from sandbox.agent.openenv import visible
from sandbox.agent.played import (
    TASK,
    TASK_TEXT,
    TIER,
    AskedTask,
    Confirmation,
    TaskFacts,
    compare_tasks,
    said_task,
)
from sandbox.errors import OtherTask

# Names that servers use. The first one with a value counts.
OUTPUT = ("command_output", "output", "stdout", "result", "text", "message")
ERROR = ("error", "error_message", "stderr")
PROGRESS = ("partial_progress", "progress")
ACHIEVED = ("task_achieved", "success", "solved", "completed")
HINTS = ("hints_used", "hint_used", "hint")
PLACEHOLDER = re.compile(r"\{(task|step|output|error|reward|history)\}")


@dataclass(frozen=True, slots=True)
class LivePrompt:
    """`system` is sent unchanged; in `turn`, `{task} {step} {output} {error} {reward} {history}` are filled in."""

    system: str
    turn: str


@dataclass(frozen=True, slots=True)
class Rules:
    """How commands are read. `read` returns the command of a reply or None; without one `fallback` runs and the reply
    counts as a format failure. `asks_hint` says whether a command asks for a hint; without `hints` such a command is
    not sent, and `fallback` runs instead."""

    read: Callable[[str], str | None]
    fallback: str
    asks_hint: Callable[[str], bool]
    hints: bool = True


@dataclass(frozen=True, slots=True)
class LiveStep:
    """One turn: prompt, reply, the command that ran and its result. `progress` is 0–1, None if not reported."""

    prompt: str
    reply: str
    thinking: str
    action: str
    format_failure: bool
    hint: bool
    fields: Mapping[str, object]
    reward: float | None
    progress: float | None
    done: bool


@dataclass(frozen=True, slots=True)
class LiveEpisode:
    """`completed`: the environment reports the task as achieved; if it reports nothing, the episode is done with a
    reward above 0 in its last step. `task` and `tier` are from the first observation, `said` is what the server says
    of its task, `opening` what the model saw before its first step."""

    task: str
    tier: str
    steps: tuple[LiveStep, ...]
    completed: bool
    said: TaskFacts
    confirmation: Confirmation
    opening: Observation

    @property
    def total_reward(self) -> float:
        return sum(step.reward or 0.0 for step in self.steps)

    @property
    def terminal_reward(self) -> float:
        """The last step's reward: unlike the sum, it does not pay for stalling."""
        return (self.steps[-1].reward or 0.0) if self.steps else 0.0

    @property
    def max_progress(self) -> float:
        """The most progress at any step; 1 for a completed episode."""
        return max([1.0 if self.completed else 0.0, *(step.progress or 0.0 for step in self.steps)])

    @property
    def hinted(self) -> bool:
        return any(step.hint for step in self.steps)

    @property
    def format_failures(self) -> int:
        return sum(step.format_failure for step in self.steps)


async def run_live_episode(
    *,
    environment: Environment,
    complete: Complete,
    prompt: LivePrompt,
    rules: Rules,
    max_steps: int,
    asked: AskedTask,
) -> LiveEpisode:
    """Run one episode. Raises `OtherTask` if the server says that it plays another task than the one asked for, before
    the model is called or at a later step. `SandboxFailed` and exceptions of `complete` are not caught: the caller
    starts again."""
    opening = seen = await environment.reset()
    said = said_task(seen.fields, await environment.about_task())
    confirmation = _confirmed(asked, said)
    task, tier = task_of(seen.fields), _tier_of(seen.fields)
    steps: list[LiveStep] = []
    while len(steps) < max_steps and not (steps and steps[-1].done):
        text = _turn(prompt.turn, task, seen, steps)
        reply = await complete([{"role": "system", "content": prompt.system}, {"role": "user", "content": text}])
        command = rules.read(reply.text)
        action = command if command is not None else rules.fallback
        wants_hint = rules.asks_hint(action)
        if wants_hint and not rules.hints:
            action = rules.fallback
        step = await environment.step(action)
        steps.append(
            LiveStep(
                prompt=text,
                reply=reply.text,
                thinking=reply.thinking,
                action=action,
                format_failure=command is None,
                hint=wants_hint or _more_hints(seen.observed(HINTS), step.observation.observed(HINTS)),
                fields=step.observation.fields,
                reward=step.reward,
                progress=_number(step.observation.observed(PROGRESS)),
                done=step.done,
            )
        )
        seen = step.observation
        # A server may word its instruction differently at each step, but its task keeps its id.
        _confirmed(asked, TaskFacts(ids=said_task(seen.fields, step.info).ids))
    return LiveEpisode(task, tier, tuple(steps), _completed(steps), said, confirmation, opening)


def _confirmed(asked: AskedTask, said: TaskFacts) -> Confirmation:
    found = compare_tasks(asked, said)
    if found == Confirmation.MISMATCH:
        why = f"{asked.facts.sentence} was asked for, the server plays {said.sentence}"
        raise OtherTask(asked.facts.as_json(), said.as_json(), why)
    return found


def task_of(fields: Mapping[str, object]) -> str:
    """The task's text, or the description in a task object, without any scoring field."""
    shown = visible(fields)
    for name in TASK:
        value = shown.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, dict):
            return next((text for key in TASK_TEXT if isinstance(text := value.get(key), str)), "")
    return ""


def _tier_of(fields: Mapping[str, object]) -> str:
    task = fields.get("task")
    places = [fields, task] if isinstance(task, dict) else [fields]
    return next((str(place[name]) for place in places for name in TIER if place.get(name) not in (None, "")), "")


def _turn(template: str, task: str, seen: Observation, steps: Sequence[LiveStep]) -> str:
    shown = Observation(seen.text, visible(seen.fields))
    output, error = shown.observed(OUTPUT), shown.observed(ERROR)
    given = {
        "task": task or "(what the environment shows below)",
        "step": str(len(steps)),
        # A server may call none of its fields an output: then all of it is shown.
        "output": str(output) if output is not None else seen.text,
        "error": str(error or ""),
        "reward": f"{steps[-1].reward or 0.0:.2f}" if steps else "0.00",
        "history": "\n".join(f"{n}. {step.action}" for n, step in enumerate(steps, 1)) or "None",
    }
    return PLACEHOLDER.sub(lambda found: given[found[1]], template)


def _more_hints(before: object, after: object) -> bool:
    """Whether this step gave a hint: a higher count, a flag that was set, or a new text."""
    if isinstance(after, str):
        return bool(after) and after != before
    return isinstance(after, int | float) and after > (before if isinstance(before, int | float) else 0)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _completed(steps: Sequence[LiveStep]) -> bool:
    if not steps:
        return False
    reported = [value for step in steps if isinstance(value := Observation("", step.fields).observed(ACHIEVED), bool)]
    return any(reported) if reported else steps[-1].done and (steps[-1].reward or 0.0) > 0
