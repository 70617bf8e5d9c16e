"""The history as trainers read it: all messages of a file have the same keys.

Plain conversations have `role` and `content`. With tool calls every message has all five keys, empty where they do not
apply, because a reader that derives its columns from the first rows must find the same ones later.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import orjson

from curation.exports.rows.skip_reasons import SkipReason
from judging.messages import content_of

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
    """Messages with the same keys; `tools` says which. `opened` is their JSON list without its closing bracket, so that
    formats can append to it; `characters` is the length of everything that a model would read."""

    opened: bytes
    tools: bool
    characters: int

    def answer(self, text: str) -> bytes:
        """Return the last assistant message of a row as JSON. Raises `orjson.JSONEncodeError`."""
        message: Message = {"role": "assistant", "content": text}
        return orjson.dumps(_with_all_keys(message) if self.tools else message)


class BadHistory(Exception):
    """A history that cannot be exported, and why."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason.label)
        self.reason = reason


def conversation(history: object) -> Conversation:
    """Return the history of a prompt as the files have it. Raises `BadHistory`, or `orjson.JSONEncodeError` if UTF-8
    cannot encode it.

    Thinking text at the start of an assistant turn and keys other than the five are dropped.
    """
    if not isinstance(history, list):
        raise BadHistory(SkipReason.BAD_MESSAGE)
    characters = _plain_length(history)
    if characters is not None:
        return Conversation(orjson.dumps(history)[:-1], False, characters)
    messages = [_read(message) for message in history]
    if not any(message["content"].strip() for message in messages):
        raise BadHistory(SkipReason.EMPTY_PROMPT)
    if max(map(len, messages)) == 2:
        return Conversation(orjson.dumps(messages)[:-1], False, length(messages))
    full = [_with_all_keys(message) for message in messages]
    calls = sum(len(call["function"]["arguments"]) for message in full for call in message["tool_calls"])
    return Conversation(orjson.dumps(full)[:-1], True, length(full) + calls)


def length(messages: Sequence[Message]) -> int:
    """Return the characters of messages without tool calls."""
    return sum(len(message["content"]) for message in messages)


def _plain_length(history: list[object]) -> int | None:
    """Return the characters if all messages have their final form already, as nearly all do, else None. It is one loop
    because it runs for every row."""
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
        raise BadHistory(SkipReason.BAD_MESSAGE)
    role = ROLES.get(message.get("role", ""))
    if role is None:
        raise BadHistory(SkipReason.BAD_MESSAGE)
    content = _content(message)
    kept: Message = {"role": role, "content": content}
    if role == "assistant":
        given = message.get("tool_calls")
        if "<think" in content:
            kept["content"] = content = THINKING.sub("", content, count=1) if THINKING.match(content) else content
        if given:
            kept["tool_calls"] = [_call(call) for call in _sequence(given)]
        elif not content.strip():
            raise BadHistory(SkipReason.EMPTY_TURN)
    elif role == "tool":
        kept["tool_call_id"], kept["name"] = _word(message.get("tool_call_id")), _word(message.get("name"))
    return kept


def _content(message: dict[str, object]) -> str:
    """Return the text, the joined text parts, or nothing for null. Other parts, such as images, cannot be exported."""
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        for part in _sequence(content):
            if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
                raise BadHistory(SkipReason.BAD_MESSAGE)
    return content_of(message)


def _call(call: object) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadHistory(SkipReason.BAD_MESSAGE)
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        # Objects whose keys differ from row to row are no column; the models' own API sends a string of JSON.
        arguments = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS).decode()
    return {
        "id": _word(call.get("id")),
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _sequence(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise BadHistory(SkipReason.BAD_MESSAGE)
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


def read_json(text: str) -> object:
    """Return a JSON column that was read as text, with a faster parser than Django's."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # JSON can escape half of a surrogate pair. The row is skipped later, because UTF-8 cannot encode it.
        return json.loads(text)
