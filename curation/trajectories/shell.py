"""The terminal view of a session: its steps as turns in deploy format, and turns as steps.

Turns are `{kind: orientation | action | output, text, prompt, exit_code, seconds, truncated, call,
metrics}`. An action is the
message of an agent's step with its calls, whose observation is the output. An orientation is any other step. In a
shell, the text of an orientation or output ends with the terminal's next prompt, which `prompt` repeats. The `call` of
an action is a model's call of a function; the text is the command that it executed.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from curation.imports.layouts.messages.write import messages_of
from curation.imports.layouts.session import Json, Step
from curation.trajectories.recorded import text_of
from curation.web.text.markup import command_of
from judging.messages import content_of

Turn = dict[str, Any]
_SCREEN = ("prompt", "exit_code", "seconds", "truncated")
# Of a step that calls a function of a rollout: the command that the call executed.
COMMAND = "command"


def steps_of(turns: Sequence[Mapping[str, Any]]) -> list[Step]:
    """Return turns as steps. Raises `ValueError` for an output that follows no action."""
    steps: list[Step] = []
    for turn in turns:
        extra = {name: turn[name] for name in _SCREEN if turn.get(name) is not None}
        step: Step = {"step_id": len(steps) + 1, "source": "agent", "message": turn["text"]}
        if turn["kind"] == "action":
            metrics: Json = {"metrics": turn["metrics"]} if turn.get("metrics") else {}
            steps.append({**step, **(_called(turn) if turn.get("call") else {}), **metrics})
        elif turn["kind"] == "orientation":
            steps.append({**step, "source": "user", "extra": extra})
        elif not steps or steps[-1]["source"] != "agent" or "observation" in steps[-1]:
            raise ValueError("an output follows no action")
        else:
            calls = steps[-1].get("tool_calls") or ()
            source = {"source_call_id": calls[0]["tool_call_id"]} if calls else {}
            steps[-1]["observation"] = {"results": [{**source, "content": turn["text"], "extra": extra}]}
    return steps


def _called(turn: Mapping[str, Any]) -> Json:
    """The fields of a step whose action was a call. Arguments that were executed are a JSON object."""
    call = turn["call"]
    function = call["function"]
    arguments = json.loads(function["arguments"] or "{}")
    called = {"tool_call_id": call["id"], "function_name": function["name"], "arguments": arguments}
    return {"message": "", "tool_calls": [called], "extra": {COMMAND: turn["text"]}}


def action_of(step: Step) -> str:
    """Return the text of an agent's step: the command that a call of ours executed, else the message and its calls."""
    executed = (step.get("extra") or {}).get(COMMAND) if step.get("tool_calls") else None
    return text_of(messages_of(step)[0]) if executed is None else str(executed)


def turns_of(steps: Sequence[Step]) -> list[Turn]:
    turns: list[Turn] = []
    for step in steps:
        if step["source"] == "agent":
            turns.append({"kind": "action", "text": action_of(step)})
        else:
            turns.append({"kind": "orientation", "text": _text(step["message"]), **_screen(step, "prompt")})
        for result in _results(step):
            turns.append({"kind": "output", "text": _text(result.get("content")), **_screen(result, *_SCREEN)})
    return turns


def positions_of(steps: Sequence[Step]) -> list[int]:
    return [position for position, step in enumerate(steps) for _ in range(1 + len(_results(step)))]


def _results(step: Step) -> Sequence[Json]:
    return (step.get("observation") or {}).get("results") or ()


def commands_of(step: Step) -> list[str] | None:
    """Return the commands that an agent's step runs in a shell, None if it calls anything else. A call without
    arguments, such as that which ends a task, is its name."""
    commands: list[str] = []
    for call in step.get("tool_calls") or ():
        command = command_of(call["function_name"], call["arguments"])
        if command is None and call["arguments"]:
            return None
        commands.append(call["function_name"] if command is None else command.rstrip("\n"))
    return commands


def is_shell(steps: Sequence[Step]) -> bool:
    """Whether all that the agent calls are commands of a shell."""
    calling = [step for step in steps if step["source"] == "agent" and step.get("tool_calls")]
    return bool(calling) and all(commands_of(step) is not None for step in calling)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else content_of({"content": content})


def _screen(shown: Mapping[str, Any], *names: str) -> Turn:
    extra = shown.get("extra") or {}
    empty = {"prompt": "", "truncated": False}
    return {name: extra.get(name, empty.get(name)) for name in names}
