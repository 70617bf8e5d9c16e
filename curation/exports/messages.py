"""The history as trainers read it: one shape for every message of a file, whatever the source's was.

Plain conversations have `role` and `content`. Where tools were called every message has all five keys, empty where
they do not apply, since a reader that derives its columns from the first rows must find the same ones later.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, TypedDict, TypeGuard

import orjson

from curation.exports.hygiene import Reason

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
ROLES["function"] = "tool"
_PLAIN = ("user", "system")
THINKING = re.compile(r"\s*<(think|thinking)>.*?</\1>\s*", re.DOTALL)


class Function(TypedDict):
    name: str
    arguments: str


class ToolCall(TypedDict):
    id: str
    type: str
    function: Function


class Message(TypedDict, total=False):
    role: str
    content: str
    tool_calls: list[ToolCall]
    tool_call_id: str
    name: str


class Conversation(NamedTuple):
    """Messages of one shape as a list in JSON, since each format writes the same ones again; `tools` says which shape;
    `characters` is the length of all that a model would read."""

    json: bytes
    tools: bool
    characters: int

    def before(self, message: Message) -> orjson.Fragment:
        """The whole list with one more message at its end."""
        return orjson.Fragment(b"%b,%b]" % (self.json[:-1], orjson.dumps(message)))


class BadHistory(Exception):
    """A history that cannot be exported, and the reason for it."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.label)
        self.reason = reason


def conversation(history: object) -> Conversation:
    """The history of a prompt in the shape of the files; raises `BadHistory`.

    Thinking text at the start of an assistant turn is left out, keys other than the five are dropped.
    """
    if not isinstance(history, list):
        raise BadHistory(Reason.BAD_MESSAGE)
    tools, characters, blank = False, 0, True
    read: list[Message] = []
    for message in history:
        kept = message if _is_plain(message) else _read(message)
        read.append(kept)
        content = kept["content"]
        characters += len(content)
        blank = blank and not content.strip()
        tools = tools or len(kept) > 2
    if blank:
        raise BadHistory(Reason.EMPTY_PROMPT)
    if not tools:
        return Conversation(_written(read), False, characters)
    full = [_with_all_keys(message) for message in read]
    calls = sum(len(call["function"]["arguments"]) for message in full for call in message["tool_calls"])
    return Conversation(_written(full), True, characters + calls)


def _written(messages: list[Message]) -> bytes:
    try:
        return orjson.dumps(messages)
    except orjson.JSONEncodeError:
        raise BadHistory(Reason.NOT_UTF8) from None


def assistant(text: str, *, tools: bool) -> Message:
    """An answer as the assistant message that ends a row."""
    message: Message = {"role": "assistant", "content": text}
    return _with_all_keys(message) if tools else message


def length(messages: Sequence[Message]) -> int:
    """Characters of all messages, whose content is all they have."""
    return sum(len(message["content"]) for message in messages)


def _is_plain(message: object) -> TypeGuard[Message]:
    """Whether a message has its final form already, as nearly all have; the others are worth a closer look."""
    if type(message) is not dict or len(message) != 2 or next(iter(message)) != "role":
        return False
    role, content = message["role"], message.get("content")
    if type(content) is not str:
        return False
    return role in _PLAIN or (
        role == "assistant" and "<think" not in content and not content.isspace() and content != ""
    )


def _read(message: object) -> Message:
    if not isinstance(message, dict):
        raise BadHistory(Reason.BAD_MESSAGE)
    role = ROLES.get(message.get("role", ""))
    if role is None:
        raise BadHistory(Reason.BAD_MESSAGE)
    content = message.get("content")
    if not isinstance(content, str):
        content = _joined(content)
    kept: Message = {"role": role, "content": content}
    if role == "assistant":
        given = message.get("tool_calls")
        if "<think" in content:
            kept["content"] = content = THINKING.sub("", content, count=1) if THINKING.match(content) else content
        if given:
            kept["tool_calls"] = [_call(call) for call in _sequence(given)]
        elif not content.strip():
            raise BadHistory(Reason.EMPTY_TURN)
    elif role == "tool":
        kept["tool_call_id"], kept["name"] = _word(message.get("tool_call_id")), _word(message.get("name"))
    return kept


def _joined(content: object) -> str:
    """Text of a content that is null or a list of text parts; pictures and the like cannot be exported."""
    if content is None:
        return ""
    parts = []
    for part in _sequence(content):
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise BadHistory(Reason.BAD_MESSAGE)
        parts.append(part["text"])
    return "\n".join(parts)


def _call(call: object) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadHistory(Reason.BAD_MESSAGE)
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        # Objects with other keys in every row are no column; a string of JSON is what the models' own API sends.
        arguments = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS).decode()
    return {
        "id": _word(call.get("id")),
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _sequence(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise BadHistory(Reason.BAD_MESSAGE)
    return value


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _with_all_keys(message: Message) -> Message:
    return {
        "role": message["role"],
        "content": message["content"],
        "tool_calls": message.get("tool_calls", []),
        "tool_call_id": message.get("tool_call_id", ""),
        "name": message.get("name", ""),
    }
