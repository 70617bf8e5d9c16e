"""A model call that a trace or log recorded, and how the formats write a message."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

Json = Mapping[str, object]
Message = dict[str, object]
# Levels of nesting in a span or in JSON text of it; a name with dots is as many levels.
DEEPEST = 100
# One of these names tells a message from other objects.
_MARKS = frozenset(("role", "parts", "tool_calls", "tool_call"))
# Fields of a message that are left to the reader of messages, as are parts of other kinds.
_LEFT = ("additional_kwargs", "function_call", "refusal", "reasoning", "thinking", "reasoning_details", "is_error")
# Parts that are read here; others are left to the reader of messages.
_PLAIN = ("tool_call", "tool_use", "tool_call_response", "tool_result", "reasoning", "thinking", "text", None)
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
class Found:
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
        if isinstance(part, Mapping):
            # An attribute of OTLP has its name beside the value.
            name = part.get("key") if part.keys() <= {"key", "value"} else ""
            dots = name.count(".") if isinstance(name, str) else 0
            waiting += [(inner, depth + 1 + dots + key.count(".")) for key, inner in part.items()]
        elif isinstance(part, list):
            waiting += [(inner, depth + 1) for inner in part]


def parsed(value: object) -> object:
    """Return the value of JSON text, and any other value as it is. Text that is nested too deep stays text."""
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value, parse_constant=_refuse_constant)
        if value.count("[") + value.count("{") > DEEPEST:
            refuse_deep(found)
    except (ValueError, RecursionError, Unreadable):  # RecursionError: nested beyond the interpreter's depth
        return value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def listed(value: object) -> list[object]:
    """Return a list, which may be JSON text; an object is a list of one, and anything else is empty."""
    found = parsed(value)
    if isinstance(found, list):
        return found
    return [found] if isinstance(found, Mapping) else []


def messages_of(value: object, role: str) -> list[Message]:
    """Return messages of any of the forms; `role` is that of text without one.

    Text that is JSON but no messages, such as a number or an object that the model was asked for, is the content. An
    object that is no message is left out.
    """
    found = parsed(value)
    if isinstance(value, str) and not _are_messages(found):
        return [{"role": role, "content": value}] if value else []
    if isinstance(found, Mapping) and isinstance(found.get("messages"), list):
        found = found["messages"]
    if isinstance(found, list) and len(found) == 1 and isinstance(found[0], list):  # of each prompt in a batch
        [found] = found
    entries = (entry for entry in listed(found) if isinstance(entry, Mapping))
    known = (entry for entry in entries if _is_item(entry) or (_MARKS | {"content"}) & entry.keys())
    return [message for entry in known for message in _messages(entry, role)]


def _are_messages(found: object) -> bool:
    if isinstance(found, Mapping) and isinstance(found.get("messages"), list):
        return True
    entries = found if isinstance(found, list) else [found]
    if len(entries) == 1 and isinstance(entries[0], list):
        [entries] = entries
    return bool(entries) and all(
        isinstance(entry, Mapping) and (_is_item(entry) or bool(_MARKS & entry.keys())) for entry in entries
    )


def _is_item(entry: Json) -> bool:
    return "role" not in entry and ("lc" in entry or str(entry.get("type")) in _ITEMS)


def _messages(entry: Json, role: str) -> Iterator[Message]:
    """Yield the messages of one entry: results of tools that share a message are messages of their own."""
    if _is_item(entry):
        yield dict(entry)
        return
    role = str(entry.get("role") or role)
    parts = entry.get("parts", entry.get("content"))
    if not isinstance(parts, list):
        message: Message = {"role": role, "content": _as_text(parts)}
        if calls := calls_of(entry.get("tool_calls")):
            message["tool_calls"] = calls
        if isinstance(thought := entry.get("reasoning_content"), str) and thought:
            message["reasoning_content"] = thought
        for key in ("tool_call_id", "name"):
            if isinstance(entry.get(key), str):
                message[key] = entry[key]
        message |= {key: entry[key] for key in _LEFT if entry.get(key)}
        if role == "tool" and "tool_call_id" not in message and isinstance(entry.get("id"), str):
            message["tool_call_id"] = entry["id"]
        yield message
        return
    if all(map(_is_plain, parts)):
        yield from _of_parts(role, parts, calls_of(entry.get("tool_calls")))
    else:
        yield {**entry, "role": role, "content": [_image_of(part) for part in parts]}


def _is_plain(part: object) -> bool:
    return not isinstance(part, Mapping) or part.get("type") in _PLAIN


def _image_of(part: object) -> object:
    """Return an image of OpenTelemetry in OpenAI's form, and any other part as it is."""
    if not isinstance(part, Mapping) or part.get("modality") != "image":
        return part
    data = f"data:{part.get('mime_type') or 'image/png'};base64,{part.get('content')}"
    return {"type": "image_url", "image_url": {"url": part.get("uri") or data}}


def _of_parts(role: str, parts: Sequence[object], calls: list[object]) -> Iterator[Message]:
    texts: list[str] = []
    thoughts: list[str] = []
    for given in parts:
        part = given if isinstance(given, Mapping) else {"type": "text", "content": given}
        kind = part.get("type")
        if kind in ("tool_call", "tool_use"):
            calls = [*calls, *calls_of([part])]
        elif kind in ("tool_call_response", "tool_result"):
            result = next((part[key] for key in ("response", "result", "content") if part.get(key) is not None), "")
            identifier = part.get("id") or part.get("tool_use_id")
            answers = {"tool_call_id": identifier} if isinstance(identifier, str) else {}
            yield {"role": "tool", "content": _as_text(result), **answers}
        elif kind in ("reasoning", "thinking"):
            thoughts.append(_as_text(part.get("content") or part.get("thinking") or part.get("text")))
        else:
            texts.append(_as_text(part.get("content", part.get("text"))))
    if texts or thoughts or calls:
        message: Message = {"role": role, "content": "\n".join(texts)}
        if calls:
            message["tool_calls"] = calls
        if thoughts:
            message["reasoning_content"] = "\n".join(thoughts)
        yield message


def calls_of(value: object) -> list[object]:
    """Return tool calls in OpenAI's form from that form, or from name and arguments without `function`."""
    calls: list[object] = []
    for given in listed(value):
        inner = given.get("tool_call", given) if isinstance(given, Mapping) else {}
        call: Json = inner if isinstance(inner, Mapping) else {}
        function = call.get("function")
        named: Json = function if isinstance(function, Mapping) else call
        name = function if isinstance(function, str) else named.get("name")
        arguments = named.get("arguments", named.get("input"))
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
        identifier = {"id": call["id"]} if call.get("id") else {}
        calls.append({**identifier, "type": "function", "function": {"name": str(name or ""), "arguments": written}})
    return calls


def tools_of(value: object) -> list[object]:
    """Return tools in OpenAI's form, from that form or from name, description and parameters."""
    tools: list[object] = []
    for given in listed(value):
        tool = parsed(given)
        if not isinstance(tool, Mapping):
            continue
        if isinstance(tool.get("function"), Mapping):
            tools.append({"type": "function", "function": dict(tool["function"])})
        elif "name" in tool:
            named = {key: tool[key] for key in ("name", "description", "parameters") if tool.get(key) is not None}
            schema = tool.get("input_schema")
            tools.append({"type": "function", "function": {"parameters": schema, **named} if schema else named})
    return tools


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
