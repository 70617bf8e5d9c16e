"""Chat messages in the form of the OpenAI API."""

import json
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict


class ToolFunction(TypedDict):
    """Name and arguments of a tool call; arguments are JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """One tool call of an assistant message."""

    id: NotRequired[str]
    type: NotRequired[str]
    function: ToolFunction


class Message(TypedDict):
    """One message of a history in OpenAI's form. `content` may be null when there are tool calls."""

    role: str
    content: str | None
    tool_calls: NotRequired[Sequence[ToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


def content_of(message: object) -> str:
    """Return the text of a message: its content may be text, a list of parts or missing. A string is returned as is.

    Parts that are not text are skipped.
    """
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, str):
        return content
    parts: Sequence[object] = content if isinstance(content, Sequence) and not isinstance(content, bytes) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def message_text(message: Mapping[str, object] | Message) -> str:
    """Return a message's content, followed by its tool calls as judges see them."""
    lines = [content_of(message)]
    calls = message.get("tool_calls")
    if isinstance(calls, Sequence) and not isinstance(calls, str):
        lines += [_render_call(call) for call in calls]
    return "\n".join(filter(None, lines))


def _render_call(call: object) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return f"[tool call] {json.dumps(call, ensure_ascii=False, default=str)}"
    arguments = function.get("arguments", "")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    label = f"[tool call {call['id']}]" if isinstance(call, Mapping) and call.get("id") else "[tool call]"
    return f"{label} {function.get('name', '')} {shown}".rstrip()
