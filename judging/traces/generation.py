"""A model call that a trace or log recorded, and how the formats write a message."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

# An object of JSON is known as a `dict`: a look for a `Mapping` takes three times as long.
Json = Mapping[str, object]
Message = dict[str, object]
# Levels of nesting in a span or in JSON text of it; a name with dots is as many levels.
DEEPEST = 100
# One of these names tells a message from other objects.
_MARKS = frozenset(("role", "parts", "tool_calls", "tool_call"))
# Other fields that messages of some services have.
_LEFT = (
    *("tool_call_id", "name", "reasoning_content", "reasoning", "thinking", "reasoning_details", "refusal"),
    *("additional_kwargs", "function_call", "is_error"),
)
# Items of OpenAI's Responses and messages of LangChain, which have no role.
_ITEMS = frozenset(("function_call", "function_call_output", "reasoning", "human", "ai", "system", "tool"))


class Unreadable(Exception):
    """A span, log record or observation that cannot be read; the message is the reason shown to its sender."""


@dataclass(frozen=True, slots=True)
class Generation:
    """Messages in OpenAI's form that end with the model's answer; those with parts of other kinds are as their source
    has them. `turns` are the indexes of this call's answers; `group` is shared by the calls of one task, such as the
    id of the trace."""

    messages: list[Message]
    turns: list[int]
    tools: list[object]
    group: str


@dataclass(frozen=True, slots=True)
class FoundGenerations:
    """The contents of a document: `generations`, the number of model calls recorded `without_content`, and in
    `unreadable` the reason for each unreadable part."""

    generations: list[Generation]
    without_content: int = 0
    unreadable: list[str] = field(default_factory=list)


def generations_of(
    given: Sequence[Message], outputs: Sequence[Message], tools: Sequence[object], group: str
) -> list[Generation]:
    """Return one generation for each choice that the model gave. A call without input or output gives none."""
    if not given:
        return []
    return [
        Generation([*given, output], [len(given)], list(tools), group)
        for output in outputs
        if output.get("content") or output.get("tool_calls") or "kwargs" in output
    ]


def refuse_deep(value: object) -> None:
    """Raise `Unreadable` for a value that is nested too deep to be read, or to be stored."""
    waiting = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > DEEPEST:
            raise Unreadable(f"it has more than {DEEPEST} levels of nesting")
        if isinstance(part, dict):
            # An attribute of OTLP has its name beside the value.
            name = part.get("key")
            dots = name.count(".") if isinstance(name, str) and part.keys() <= {"key", "value"} else 0
            waiting += [(inner, depth + 1 + dots + key.count(".")) for key, inner in part.items()]
        elif isinstance(part, list):
            waiting += [(inner, depth + 1) for inner in part]


def parsed(value: object) -> object:
    """Return the value of JSON text, and any other value as it is. Text that is nested too deep stays text."""
    if not isinstance(value, str):
        return value
    try:
        found = _READER.decode(value)
        if value.count("[") + value.count("{") > DEEPEST:
            refuse_deep(found)
    except (ValueError, RecursionError, Unreadable):  # RecursionError: nested beyond the interpreter's depth
        return value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


# One for all texts: `json.loads` makes another each time.
_READER = json.JSONDecoder(parse_constant=_refuse_constant)


def listed(value: object) -> list[object]:
    """Return a list, which may be JSON text; an object is a list of one, and anything else is empty."""
    found = parsed(value)
    if isinstance(found, list):
        return found
    return [found] if isinstance(found, dict) else []


def messages_of(value: object, role: str) -> list[Message]:
    """Return messages of any of the forms; `role` is that of text without one.

    Text that is JSON but no messages, such as a number or an object that the model was asked for, is the content. An
    object that is no message is left out.
    """
    found = parsed(value)
    if isinstance(value, str) and not _are_messages(found):
        return [{"role": role, "content": value}] if value else []
    if isinstance(found, dict) and isinstance(found.get("messages"), list):
        found = found["messages"]
    batch = found if isinstance(found, list) and len(found) == 1 else []  # a list for each prompt
    inner = batch[0] if batch and isinstance(batch[0], list) else found
    entries = (entry for entry in listed(inner) if isinstance(entry, dict))
    known = (entry for entry in entries if _is_item(entry) or (_MARKS | {"content"}) & entry.keys())
    return [_message(entry, role) for entry in known]


def _are_messages(found: object) -> bool:
    if isinstance(found, dict) and isinstance(found.get("messages"), list):
        return True
    entries: list[object] = found if isinstance(found, list) else [found]
    if len(entries) == 1 and isinstance(inner := entries[0], list):
        entries = inner
    return bool(entries) and all(
        isinstance(entry, dict) and (_is_item(entry) or bool(_MARKS & entry.keys())) for entry in entries
    )


def _is_item(entry: Json) -> bool:
    return "role" not in entry and ("lc" in entry or str(entry.get("type")) in _ITEMS)


def _message(entry: Json, role: str) -> Message:
    """Return a message whose parts, calls and tools are as its source has them: the reader of messages knows all."""
    if _is_item(entry):
        return dict(entry)
    parts = entry.get("parts", entry.get("content"))
    content = [_part(part) for part in parts] if isinstance(parts, list) else _as_text(parts)
    message: Message = {"role": str(entry.get("role") or role), "content": content}
    message |= {key: entry[key] for key in _LEFT if entry.get(key)}
    if calls := listed(entry.get("tool_calls")):
        message["tool_calls"] = [call.get("tool_call", call) if isinstance(call, dict) else call for call in calls]
    if message["role"] == "tool" and "tool_call_id" not in message and isinstance(entry.get("id"), str):
        message["tool_call_id"] = entry["id"]
    return message


def _part(part: object) -> object:
    """Return an image in the form of OpenAI, a value as text, and any other part as it is."""
    if not isinstance(part, dict):
        return {"type": "text", "text": _as_text(part)}
    if part.get("modality") == "image":
        data = f"data:{part.get('mime_type') or 'image/png'};base64,{part.get('content')}"
        return {"type": "image_url", "image_url": {"url": part.get("uri") or data}}
    if isinstance(image := part.get("image"), dict) and "image" in image:
        return {**part, "image": image["image"]}
    is_text = part.get("type") in ("text", None) and not {"text", "content"}.isdisjoint(part)
    return {**part, "type": "text", "text": _as_text(part.get("content", part.get("text")))} if is_text else part


def tools_of(value: object) -> list[object]:
    """Return the definitions of tools in a list, as their source has them."""
    return [tool for given in listed(value) if isinstance(tool := parsed(given), dict)]


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
