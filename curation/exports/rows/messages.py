"""The history as trainers read it: known roles, text, well-formed tool calls, and no empty keys.

A message has `role` and `content`; an assistant's may have `tool_calls`, with arguments as JSON text, and
`reasoning_content`; a tool's may have `tool_call_id` and `name`. Of others `images` has the addresses of images.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import orjson

from curation.exports.rows.images import IMAGE
from curation.exports.rows.skip_reasons import SkipReason
from curation.imports.layouts.messages.write import write_arguments
from judging.messages import ToolCall, add_call_ids, content_of

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
ROLES["function"] = "tool"
_PLAIN, _KEYS = ("user", "system"), ["role", "content"]
_CALL_KEYS, _RESULT_KEYS = [*_KEYS, "tool_calls"], [*_KEYS, "tool_call_id"]
THINKING = re.compile(r"\s*<(think|thinking)>(?P<text>.*?)</\1>\s*", re.DOTALL)
Tool = dict[str, object]


class ExportedMessage(TypedDict, total=False):
    role: str
    content: str
    reasoning_content: str
    tool_calls: list[ToolCall]
    tool_call_id: str
    name: str
    images: tuple[str, ...]


class BadHistory(Exception):
    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason.label)
        self.reason = reason


def conversation(history: object, *, reasoning: bool = False, is_written: bool = False) -> list[ExportedMessage]:
    """Return the history of a prompt as the files have it; the calls of one that `is_written` have that form already.
    Raises `BadHistory`.

    Thinking text of assistant turns is in `reasoning_content` with `reasoning`, and otherwise dropped, as are other
    keys. Calls without an id get one, and a tool's message without one answers the next open call.
    """
    if not isinstance(history, list):
        raise BadHistory(SkipReason.BAD_MESSAGE)
    if _is_final_history(history):
        return history
    messages = [
        message if is_written and _is_final(message) else _read(message, reasoning, is_written) for message in history
    ]
    if not any(message["content"].strip() for message in messages):
        raise BadHistory(SkipReason.EMPTY_PROMPT)
    add_call_ids(cast(list[dict[str, Any]], messages))
    return messages


def trained_turns(history: object) -> list[int]:
    """Return the indexes of messages that an imported row marked as trained on. The approval of its last turn is one of
    these too: the page shows the marks."""
    messages = history if isinstance(history, list) else []
    return [index for index, message in enumerate(messages) if isinstance(message, dict) and message.get("train")]


def length(messages: Sequence[ExportedMessage]) -> int:
    """Return the number of characters that a model reads in the messages."""
    characters = 0
    for message in messages:
        characters += len(message["content"])
        if len(message) > 2:
            characters += len(message.get("reasoning_content", ""))
            for call in message.get("tool_calls", ()):
                characters += len(call["function"]["name"]) + len(call["function"]["arguments"])
    return characters


def answer_message(text: str, calls: Sequence[object], reasoning: str) -> ExportedMessage:
    """Return an assistant message without empty keys."""
    message: ExportedMessage = {"role": "assistant", "content": text}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    return message


def are_plain(messages: Sequence[ExportedMessage]) -> bool:
    """Return whether no message has more than role and content."""
    return max(map(len, messages), default=2) == 2


def with_objects(messages: Sequence[ExportedMessage]) -> Sequence[Mapping[str, Any]]:
    """Return messages whose tool arguments are objects. Arguments that are no JSON stay text."""
    if are_plain(messages):
        return messages
    return [
        {**message, "tool_calls": [_with_object(call) for call in message["tool_calls"]]}
        if "tool_calls" in message
        else message
        for message in messages
    ]


def _with_object(call: object) -> object:
    given = dict(call) if isinstance(call, dict) else {}
    function = dict(given["function"])
    try:
        function["arguments"] = orjson.loads(function["arguments"])
    except orjson.JSONDecodeError:
        return call
    return {**given, "function": function}


def call_order_reason(messages: Sequence[ExportedMessage]) -> SkipReason | None:
    """Return why an API that checks tool calls would refuse the messages, or None: each call is answered before the
    next other message, and each tool's message answers a call. Calls of the last message need no answer."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id", "") not in waiting:
                return SkipReason.TOOL_WITHOUT_CALL
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            return SkipReason.CALL_WITHOUT_RESULT
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    return None


def _is_final_history(history: list[Any]) -> bool:
    """Return whether all messages have their final form already, as nearly all do, and some text. It is one loop
    because it runs for every row."""
    for message in history:
        if type(message) is not dict or [*message] != _KEYS:
            return False
        role, content = message.values()
        if type(content) is not str or not content or content[0].isspace():
            return False
        if role not in _PLAIN and (role != "assistant" or "<think" in content):
            return False
    return bool(history)


def _is_final(message: Mapping[str, Any]) -> bool:
    """Return whether a message that `write_messages` wrote has the form of the files already, as nearly all do."""
    role, content, keys = message["role"], message["content"], [*message]
    if type(content) is not str:
        return False
    if role != "assistant":
        return keys == _KEYS or (keys == _RESULT_KEYS and role == "tool")
    return "<think" not in content and (keys == _CALL_KEYS or (keys == _KEYS and bool(content.strip())))


def _read(message: object, reasoning: bool, is_written: bool) -> ExportedMessage:
    if not isinstance(message, dict):
        raise BadHistory(SkipReason.BAD_MESSAGE)
    role = ROLES.get(message.get("role", ""))
    if role is None:
        raise BadHistory(SkipReason.BAD_MESSAGE)
    content, images = _content(message)
    if role == "assistant":
        if images:
            raise BadHistory(SkipReason.NO_IMAGES)
        thought = _word(message.get("reasoning_content"))
        if "<think" in content and (found := THINKING.match(content)):
            thought, content = thought or found["text"].strip(), content[found.end() :]
        calls = message.get("tool_calls")
        if not calls and not content.strip():
            raise BadHistory(SkipReason.EMPTY_TURN)
        thought = thought if reasoning else ""
        if calls and is_written:
            return {**answer_message(content, (), thought), "tool_calls": calls}
        return answer_message(content, _sequence(calls) if calls else (), thought)
    kept: ExportedMessage = {"role": role, "content": content}
    if images:
        kept["images"] = images
    if role == "tool":
        if identifier := _word(message.get("tool_call_id")):
            kept["tool_call_id"] = identifier
        if name := _word(message.get("name")):
            kept["name"] = name
    return kept


def _content(message: dict[str, object]) -> tuple[str, tuple[str, ...]]:
    """Return the text, or the joined parts, and the addresses of images. Other parts cannot be exported. Addresses are
    no list, because the scan masks texts in lists."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content_of(message), ()
    texts, images = [], []
    for part in _sequence(content):
        if not isinstance(part, dict):
            raise BadHistory(SkipReason.BAD_MESSAGE)
        url, text = part.get("image_url"), part.get("text")
        if part.get("type") == "image_url" and isinstance(url, dict) and _word(url.get("url")):
            images.append(url["url"])
            texts.append(IMAGE)
        elif part.get("type") == "text" and isinstance(text, str):
            texts.append(text)
        else:
            raise BadHistory(SkipReason.BAD_MESSAGE)
    joined = "\n".join(texts)
    if images and joined.count(IMAGE) != len(images):
        raise BadHistory(SkipReason.BAD_MESSAGE)
    return joined, tuple(images)


def _call(call: object) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not _word(function.get("name")):
        raise BadHistory(SkipReason.BAD_MESSAGE)
    return {
        "id": _word(call.get("id")),
        "type": "function",
        "function": {"name": function["name"], "arguments": _arguments(function.get("arguments") or {})},
    }


def _arguments(given: object) -> str:
    """Return arguments in the form that an import of the file writes again. Text that was cut off stays as it is."""
    try:
        arguments = orjson.loads(given) if isinstance(given, str) else given
    except orjson.JSONDecodeError:
        arguments = given
    return write_arguments(arguments) if isinstance(arguments, dict) else str(given)


def _sequence(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise BadHistory(SkipReason.BAD_MESSAGE)
    return value


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
