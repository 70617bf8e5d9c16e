"""The history as trainers read it: one shape for every message of a file, whatever the source's was.

Plain conversations have `role` and `content`. Where tools were called every message has all five keys, empty where
they do not apply, since a reader that derives its columns from the first rows must find the same ones later.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import orjson

from curation.exports.rows.skip_reasons import Reason

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
ROLES["function"] = "tool"
_PLAIN, _KEYS = ("user", "system"), ["role", "content"]
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
    """Messages of one shape; `tools` says which. `opened` is their list in JSON without the bracket that closes it, as
    every format writes it again; `characters` is the length of all that a model would read."""

    opened: bytes
    tools: bool
    characters: int

    def answer(self, text: str) -> bytes:
        """An answer in JSON as the assistant message that ends a row; raises `orjson.JSONEncodeError`."""
        message: Message = {"role": "assistant", "content": text}
        return orjson.dumps(_with_all_keys(message) if self.tools else message)


class BadHistory(Exception):
    """A history that cannot be exported, and the reason for it."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.label)
        self.reason = reason


def conversation(history: object) -> Conversation:
    """The history of a prompt in the shape of the files; raises `BadHistory`, or `orjson.JSONEncodeError` where it
    cannot be written as UTF-8.

    Thinking text at the start of an assistant turn is left out, keys other than the five are dropped.
    """
    if not isinstance(history, list):
        raise BadHistory(Reason.BAD_MESSAGE)
    characters = _plain_length(history)
    if characters is not None:
        return Conversation(orjson.dumps(history)[:-1], False, characters)
    read = [_read(message) for message in history]
    if not any(message["content"].strip() for message in read):
        raise BadHistory(Reason.EMPTY_PROMPT)
    if max(map(len, read)) == 2:
        return Conversation(orjson.dumps(read)[:-1], False, length(read))
    full = [_with_all_keys(message) for message in read]
    calls = sum(len(call["function"]["arguments"]) for message in full for call in message["tool_calls"])
    return Conversation(orjson.dumps(full)[:-1], True, length(full) + calls)


def length(messages: Sequence[Message]) -> int:
    """Characters of all messages, whose content is all they have."""
    return sum(len(message["content"]) for message in messages)


def _plain_length(history: list[object]) -> int | None:
    """The characters of messages that have their final form already, as nearly all have; None where a closer look at
    one of them is due. One loop for all of it: this is done for every row there is."""
    characters = 0
    for message in history:
        if type(message) is not dict or [*message] != _KEYS:
            return None
        role, content = message.values()
        if type(content) is not str or not content or content[0].isspace():
            return None
        if role not in _PLAIN and (role != "assistant" or "<think" in content):
            return None
        characters += len(content)
    return characters or None


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
