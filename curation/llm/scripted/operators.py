"""Scripted operators: play a scenario in a terminal by the written steps of the shipped bundles, or by a fixed habit.

They see only messages and know the scenario by its announcement. If the login does not show it, the solver looks for it
first. Then it follows the table: read the provider's documentation, act, exit.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from judging.messages import content_of

WRITTEN = Path(__file__).with_name("operator_steps.json")
LOOK_AROUND, READ_NOTICE, READ_ENVIRONMENT = "ls -a", "cat NOTICE", "env"
THOUGHTS = (
    "I have just arrived, so first I find out who has something for me.",
    "The documentation comes before the work.",
    "Now I know how it is served and go on.",
    "This should bring it one step further.",
)
SLEEP = "sleep 3600"
MUMBLE = "<think>Where am I? Somebody should tell me what to do.</think>"
Messages = Sequence[Mapping[str, object]]


@cache
def written_steps() -> Mapping[str, Sequence[str]]:
    """Announcement → the commands after it; the last one ends the episode."""
    rows = json.loads(WRITTEN.read_text(encoding="utf-8"))
    return {row["announcement"]: tuple(row["steps"]) for row in rows}


def solver(messages: Messages, sample_index: int) -> str:
    """The written steps; an unknown scenario ends with `exit` after a look around."""
    return _block(_solution(messages)[-1])


def mixed(messages: Messages, sample_index: int) -> str:
    """By sample: solve it, exit half-way, repeat a command; always with thinking and prose."""
    so_far = _solution(messages)
    command = so_far[-1]
    habit = sample_index % 3
    if habit == 1 and len(so_far) > max(1, _length(messages) // 2):
        command = "exit"
    elif habit == 2:
        command = so_far[min(len(so_far), 2) - 1]
    thought = THOUGHTS[min(len(so_far), len(THOUGHTS)) - 1]
    return f"<think>{thought}</think>\nTHOUGHT: {thought}\n\n{_block(command)}\n\nLet us see what it says."


def quitter(messages: Messages, sample_index: int) -> str:
    return _block("exit")


def panicker(messages: Messages, sample_index: int) -> str:
    return _block("panic nobody told me what to do")


def looper(messages: Messages, sample_index: int) -> str:
    return _block(LOOK_AROUND)


def sleeper(messages: Messages, sample_index: int) -> str:
    return _block(SLEEP)


def mumbler(messages: Messages, sample_index: int) -> str:
    return MUMBLE


def _block(command: str) -> str:
    return f"```sh\n{command}\n```"


def _solution(messages: Messages) -> list[str]:
    """The solver's commands so far and its next one. The table's steps begin when the announcement is seen."""
    said = sum(message.get("role") == "assistant" for message in messages)
    steps, before = _found(messages)
    if steps:
        wander = [_wander(messages, turn) for turn in range(before)]
        return [*wander, *steps[: said - before + 1]] if said - before < len(steps) else [*wander, *steps, steps[-1]]
    return [_wander(messages, turn) for turn in range(said + 1)]


def _length(messages: Messages) -> int:
    steps, before = _found(messages)
    return before + len(steps)


def _found(messages: Messages) -> tuple[Sequence[str], int]:
    """The steps of the announced scenario, and how many commands were given before the announcement."""
    said = 0
    for message in messages:
        if message.get("role") == "assistant":
            said += 1
            continue
        text = content_of(message)
        for announcement, steps in written_steps().items():
            if announcement in text:
                return steps, said
    return (), said


def _wander(messages: Messages, turn: int) -> str:
    """Look for an announcement that the login did not show: in a file, then in the environment."""
    if turn == 0:
        return LOOK_AROUND
    began = next(index for index, message in enumerate(messages) if message.get("role") == "assistant")
    listed = next((content_of(message) for message in messages[began:] if message.get("role") == "user"), "")
    order = [READ_NOTICE, READ_ENVIRONMENT] if "NOTICE" in listed else [READ_ENVIRONMENT]
    return order[turn - 1] if turn <= len(order) else "exit"
