"""The memory of an agent of smolagents: its steps, of which each has what the model saw before it."""

from collections.abc import Iterator, Mapping
from typing import Any

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.messages.documents import one_session
from curation.imports.layouts.messages.read import read_messages
from curation.imports.layouts.session import Json, VerifierResult, agent_of

NAME = "smolagents steps"
_TASK, _PROMPT = {"task", "task_images"}, {"system_prompt"}
_REPEATED = "ignored: earlier steps have it"
_BECOMES = {
    **dict.fromkeys(("task", "system_prompt", "plan", "tool_calls", "model_output", "observations"), "steps"),
    **dict.fromkeys(("code_action", "action_output", "output"), "ignored: the calls and results have it"),
    "model_input_messages": _REPEATED,
    "model_output_message": "steps",
    "token_usage": "usage",
    "timing": "timestamp",
    "error": "steps",
}


def is_step(value: Mapping[str, Any]) -> bool:
    """Whether a list that begins with this is a memory."""
    return "step_number" in value and "model_output" in value or value.keys() in (_TASK, _PROMPT)


def fits(document: Mapping[str, Any]) -> bool:
    steps = document.get("steps")
    return isinstance(steps, list) and any(isinstance(one, dict) and "model_output" in one for one in steps)


def read(document: Mapping[str, Any]) -> DocumentReading:
    """Return the session of a memory, or of a run with one. Raises `RowRefused`."""
    fields = Fields(document)
    steps: list[Json] = fields.take("steps", "steps")
    for index, step in enumerate(steps):
        fields.became_inside(f"steps.{index}", step, _BECOMES)
    given = [message for step in steps for message in _messages(step)]
    if given and given[0]["role"] == "assistant":  # the task is only in what the model saw
        given = [*(steps[0].get("model_input_messages") or []), *given]
    found = read_messages(given, "steps", fields)
    failed = steps[-1].get("error") if steps else None
    exception = ": ".join(str(failed[name]) for name in ("type", "message") if failed.get(name)) if failed else ""
    fields.take("messages", _REPEATED)
    return one_session(NAME, agent_of("smolagents"), found, fields, verdict=VerifierResult(exception=exception))


def _messages(step: Json) -> Iterator[Json]:
    """Yield the messages of a step, with its error as the result of its calls."""
    if step.get("system_prompt"):
        yield {"role": "system", "content": step["system_prompt"]}
    elif step.get("task"):
        yield {"role": "user", "content": step["task"]}
    elif "plan" in step or "model_output" in step:
        time = (step.get("timing") or {}).get("start_time")
        calls = [_with_object(call) for call in step.get("tool_calls") or []]
        said = step.get("model_output") or step.get("plan") or ""
        yield {
            "role": "assistant",
            "content": said,
            "tool_calls": calls,
            "usage": step.get("token_usage"),
            "timestamp": time,
        }
        error = step.get("error") or {}
        results = filter(None, (step.get("observations"), error.get("message")))
        if text := "\n".join(map(str, results)):
            yield {"role": "tool", "content": text, "is_error": bool(error)}


def _with_object(call: Json) -> Json:
    """Return a call with an object for its arguments, which are code where the agent writes code."""
    function = call.get("function") or {}
    code = function.get("arguments")
    if function.get("name") != "python_interpreter" or not isinstance(code, str):
        return call
    return {**call, "function": {**function, "arguments": {"code": code}}}
