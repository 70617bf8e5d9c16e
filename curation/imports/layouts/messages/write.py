"""Write steps as messages of the OpenAI API, which `read_messages` reads back as the same steps."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from curation.imports.layouts.messages.calls import UNPARSED
from curation.imports.layouts.session import Json, Step
from judging.messages import Message

# One for all calls: `json.dumps` makes another each time.
_WRITER = json.JSONEncoder(ensure_ascii=False)
_ROLES = {"system": "system", "user": "user", "agent": "assistant"}


def write_messages(steps: Sequence[Step], learned: Mapping[int, bool] | None = None) -> list[Message]:
    """Return the messages of all steps. Those that `learned` marks as true have `train`."""
    messages: list[Message] = []
    for position, step in enumerate(steps):
        said = messages_of(step)
        if learned and learned.get(position):
            said[0]["train"] = True
        messages += said
    return messages


def messages_of(step: Step) -> list[Message]:
    """Return the message of one step, then those of the tools that it called."""
    observation = step.get("observation")
    if not observation:
        return [own_message(step)]
    tools = [_tool_message(result) for result in observation["results"]]
    if step["source"] == "system" and not step["message"] and tools:
        return tools  # results of a call that is not in the session
    return [own_message(step), *tools]


def own_message(step: Step) -> Message:
    """Return the message of one step, without the results of its calls."""
    message: Any = {"role": _ROLES[step["source"]], "content": _content(step["message"])}
    if calls := step.get("tool_calls"):
        message["tool_calls"] = [_call(call) for call in calls]
    if reasoning := step.get("reasoning_content"):
        message["reasoning_content"] = reasoning
    if (extra := step.get("extra")) and "name" in extra:
        message["name"] = extra["name"]
    own: Message = message
    return own


def _call(call: Json) -> Json:
    extra = call.get("extra")
    unparsed = extra.get(UNPARSED) if extra else None
    arguments = write_arguments(call["arguments"]) if unparsed is None else unparsed
    function = {"name": call["function_name"], "arguments": arguments}
    return {"id": call["tool_call_id"], "type": "function", "function": function}


def write_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a call as JSON text, in the one form in which it is stored and exported."""
    if all(type(value) is str for value in arguments.values()):
        # As below, and as most are; texts by themselves are encoded much faster.
        parts = [f"{_WRITER.encode(name)}: {_WRITER.encode(value)}" for name, value in arguments.items()]
        return f"{{{', '.join(parts)}}}"
    return _WRITER.encode(arguments)


def _tool_message(result: Json) -> Any:
    message: Json = {"role": "tool", "content": _content(result.get("content") or "")}
    if identifier := result.get("source_call_id"):
        message["tool_call_id"] = identifier
    if extra := result.get("extra"):
        message |= {key: extra[key] for key in ("name", "is_error") if key in extra}
    return message


def _content(message: str | Sequence[Json]) -> str | list[Json]:
    return message if isinstance(message, str) else [_part(part) for part in message]


def _part(part: Json) -> Json:
    """Return an image in OpenAI's form. Text is the same in both, and audio, which OpenAI takes as data only, stays."""
    if part["type"] == "image":
        return {"type": "image_url", "image_url": {"url": part["source"]["path"]}}
    return part
