"""A live episode on a server elsewhere: a prompt from task and history, then one command, until done or the limit.

Each turn has a new prompt in the form that the measured models were trained on: system text, then one message with the
task, the last command's output and the commands before it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sandbox.agent.environment import Environment, EnvironmentStep, Observation, tool_result, visible, visible_text
from sandbox.agent.episode import Complete
from sandbox.agent.openenv import HIGHEST_REWARD
from sandbox.agent.reported_task import (
    TASK,
    TASK_TEXT,
    TIER,
    AskedTask,
    TaskConfirmation,
    TaskFacts,
    compare_tasks,
    reported_task,
)
from sandbox.errors import OtherTask

# Names that servers use. The first one with a value counts.
OUTPUT = ("command_output", "output", "stdout", "result", "text", "message")
ERROR = ("error", "error_message", "stderr")
PROGRESS = ("partial_progress", "progress")
OF_THE_TASK = ("task_achieved", "solved")
# At a step that is not the last one, these may tell of the action alone.
OF_AN_ACTION = ("success", "completed", "correct", "is_correct")
ACHIEVED = (*OF_THE_TASK, *OF_AN_ACTION)
HINTS = ("hints_used", "hint_used", "hint")
PLACEHOLDER = re.compile(r"\{(task|step|output|command_output|error|reward|history)\}")
NO_ACTION = "The reply has no action of the form that was asked for. Nothing was sent to the environment."
# An environment that fails so often in a row may be broken, and the episode cannot go on.
MOST_DOUBTS = 3


@dataclass(frozen=True, slots=True)
class LivePrompt:
    """`system` is sent before the environment's description of the form of actions; in `turn`, `{task} {step} {output}
    {error} {reward} {history}` are filled in. `{output}` is the whole observation, `{command_output}` its output alone.
    """

    system: str
    turn: str


@dataclass(frozen=True, slots=True)
class Rules:
    """How actions are read. `read` returns the action of a reply or None; without one `fallback` runs, or nothing if
    there is none, and the reply counts as a format failure. `asks_hint` says whether a command asks for a hint; without
    `hints` such a command is not sent, and `fallback` runs instead."""

    read: Callable[[str], str | None]
    fallback: str | None
    asks_hint: Callable[[str], bool]
    hints: bool = True


@dataclass(frozen=True, slots=True)
class LiveStep:
    """One turn: prompt, reply, the action that ran (empty if none did) and its result. `progress` is 0–1, None if not
    reported. `refused`: the server did not execute the action; its error is the only field."""

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
    refused: bool = False


@dataclass(frozen=True, slots=True)
class LiveEpisode:
    """`completed`: the environment reports the task as achieved; if it reports nothing, the episode is done with a
    reward above 0 in its last step. `success` and the like report it only at a step that is done and not without
    reward: many environments say so of each action. `task` and `tier` are from the first observation, `said` is the
    task as the server reports it, `opening` the first observation that the model saw."""

    task: str
    tier: str
    steps: tuple[LiveStep, ...]
    completed: bool
    said: TaskFacts
    confirmation: TaskConfirmation
    opening: Observation

    @property
    def total_reward(self) -> float | None:
        """None if the environment gave no reward at any step."""
        given = [step.reward for step in self.steps if step.reward is not None]
        return sum(given) if given else None

    @property
    def terminal_reward(self) -> float | None:
        """The last step's reward: unlike the sum, it does not pay for stalling. None as for the sum."""
        return None if self.total_reward is None else self.steps[-1].reward or 0.0

    @property
    def max_progress(self) -> float | None:
        """The most progress at any step; 1 for a completed episode. None if the environment reported none."""
        reported = [step.progress for step in self.steps if step.progress is not None]
        return max([float(self.completed), *reported]) if reported else None

    @property
    def judged(self) -> bool:
        """False if the environment ended the episode without a reward and a word on whether the task is achieved."""
        if not (self.steps and self.steps[-1].done) or self.total_reward is not None:
            return True
        return any(isinstance(step.fields.get(name), bool) for step in self.steps for name in OF_THE_TASK) or any(
            isinstance(self.steps[-1].fields.get(name), bool) for name in OF_AN_ACTION
        )

    @property
    def hinted(self) -> bool:
        return any(step.hint for step in self.steps)

    @property
    def format_failures(self) -> int:
        return sum(step.format_failure for step in self.steps)

    @property
    def invalid_actions(self) -> int:
        """How many actions the server refused."""
        return sum(step.refused for step in self.steps)


async def run_live_episode(
    *, environment: Environment, complete: Complete, prompt: LivePrompt, rules: Rules, max_steps: int, asked: AskedTask
) -> LiveEpisode:
    """Run one episode. Raises `OtherTask` if the server says that it plays another task than the one asked for, before
    the model is called or at a later step. `SandboxFailed` and exceptions of `complete` are not caught: the caller
    starts again.

    An action that fails on the server is the model's if it fails again in new episodes, and others do not."""
    opening = seen = await environment.reset()
    said = reported_task(seen.fields, await environment.about_task())
    confirmation = _confirmed(asked, said)
    task, tier = task_of(seen.fields), _tier_of(seen.fields)
    system = "\n\n".join(filter(None, (prompt.system, await environment.instructions())))
    steps: list[LiveStep] = []
    doubts: list[str] = []
    first_doubt = ("", 0)
    is_lost = False
    while len(steps) < max_steps and len(doubts) < MOST_DOUBTS and not is_lost and not (steps and steps[-1].done):
        text = _turn(prompt.turn, task, seen, steps)
        reply = await complete([{"role": "system", "content": system}, {"role": "user", "content": text}])
        command = rules.read(reply.text)
        action = command if command is not None else rules.fallback
        wants_hint = action is not None and rules.asks_hint(action)
        if wants_hint and not rules.hints:
            action = rules.fallback
        step = await environment.step(action) if action is not None else NOTHING_SENT
        steps.append(
            LiveStep(
                prompt=text,
                reply=reply.text,
                thinking=reply.thinking,
                action=action or "",
                format_failure=command is None,
                hint=wants_hint or _more_hints(seen.observed(HINTS), step.observation.observed(HINTS)),
                fields=step.observation.fields,
                reward=step.reward,
                progress=_share(step.observation.observed(PROGRESS)),
                done=step.done,
                refused=step.refused,
            )
        )
        is_lost = step.lost
        if step.doubt:
            doubts.append(step.doubt)
            first_doubt = first_doubt if first_doubt[0] else (step.doubt, len(steps))
        if step.refused or action is None:
            # Nothing has changed: the model still needs the observation before.
            seen = replace(seen, fields={**_without_errors(seen.fields), **step.observation.fields})
            continue
        doubts.clear()
        seen = step.observation
        # A server may word its instruction differently at each step, but its task keeps its id.
        _confirmed(asked, TaskFacts(ids=reported_task(seen.fields, step.info).ids))
    doubt, number = first_doubt
    if doubt:
        executed = [step.action for step in steps[: number - 1] if step.action and not step.refused]
        await environment.confirm_failure(doubt, executed, steps[number - 1].action, is_up=not doubts)
    return LiveEpisode(task, tier, tuple(steps), _completed(steps), said, confirmation, opening)


NOTHING_SENT = EnvironmentStep(Observation(NO_ACTION, {"error": NO_ACTION}), None, False)


def _without_errors(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if name not in ERROR}


def _confirmed(asked: AskedTask, said: TaskFacts) -> TaskConfirmation:
    found = compare_tasks(asked, said)
    if found == TaskConfirmation.MISMATCH:
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


def shown_parts(fields: Mapping[str, object], task: str = "") -> tuple[str, str, str]:
    """Return the parts of an observation that an agent sees: its output, its other fields as lines, and its error. The
    field of the task is not repeated."""
    shown = visible(fields)
    output = next((name for name in OUTPUT if _as_output(shown.get(name)) is not None), "")
    error = next((name for name in ERROR if shown.get(name) is not None), "")
    others = {
        name: value
        for name, value in shown.items()
        if name not in (output, error) and not (task and name in TASK and task_of({name: value}) == task)
    }
    return _as_output(shown.get(output)) or "", visible_text(others), _as_error(shown.get(error))


def _as_output(value: object) -> str | None:
    return value if isinstance(value, str) else tool_result(value)


def _as_error(value: object) -> str:
    """An error as an object has its text in `message`."""
    if isinstance(value, dict):
        return str(value["message"]) if "message" in value else visible_text(value)
    return "" if value is None else str(value)


def _turn(template: str, task: str, seen: Observation, steps: Sequence[LiveStep]) -> str:
    output, others, error = shown_parts(seen.fields, task)
    own_place = "{error}" in template
    given = {
        "task": task or "(what the environment shows below)",
        "step": str(len(steps)),
        "output": "\n".join(filter(None, (output, others, "" if own_place else error))),
        "command_output": output,
        "error": error,
        "reward": f"{steps[-1].reward or 0.0:.2f}" if steps else "0.00",
        "history": "\n".join(f"{n}. {step.action or '(no action)'}" for n, step in enumerate(steps, 1)) or "None",
    }
    return PLACEHOLDER.sub(lambda found: given[found[1]], template)


def _more_hints(before: object, after: object) -> bool:
    """Whether this step gave a hint: a higher count, a flag that was set, or a new text."""
    if isinstance(after, str):
        return bool(after) and after != before
    return isinstance(after, int | float) and after > (before if isinstance(before, int | float) else 0)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) <= HIGHEST_REWARD else None


def _share(value: object) -> float | None:
    """Progress from 0 to 1. A percentage or a count of steps cannot be told from one another."""
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _completed(steps: Sequence[LiveStep]) -> bool:
    if not steps:
        return False
    last = steps[-1]
    reported = [Observation("", step.fields).observed(OF_THE_TASK) for step in steps]
    if known := [value for value in reported if isinstance(value, bool)]:
        return any(known)
    if said := [value for name in OF_AN_ACTION if isinstance(value := last.fields.get(name), bool)]:
        return all(said) and last.done and (last.reward is None or last.reward > 0)
    # A score below 1 is a part of the task, which may earn a reward too.
    score = _number(last.fields.get("score"))
    return last.done and (last.reward or 0.0) > 0 and not (score is not None and 0 <= score < 1)
