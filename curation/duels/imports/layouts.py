"""Row layouts of agent turns, recognised by their columns and converted to one form of messages.

A message is `{"role": "system" | "user" | "assistant" | "tool", "content": str}`; tool calls keep `tool_calls`,
`tool_call_id` and `name` as the source has them, and reasoning is in `reasoning_content`. Tools have OpenAI's form.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import orjson

from curation.imports.sources.rows import RowRefused
from curation.web.problems import Invalid
from curation.web.text.storable import refuse_unstorable

Message = dict[str, object]
ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "function": "tool",
    "function_response": "tool",
    "observation": "tool",
}
# `owner__name-123` of SWE-bench, with `_4` after it where one task has several runs …
BENCH_ID = re.compile(r"(?P<owner>.+?)__(?P<name>.+)-\d+(?:_\d+)?")
# … and `owner__name.1a2b3c4d.kind_of_fault` of synthetic tasks.
SYNTHETIC_ID = re.compile(r"(?P<owner>.+?)__(?P<name>.+?)\.[0-9a-f]{7,40}\..+")

CALL_AFTER_TEXT = re.compile(r"(?P<text>.*?)\n?<tool_call>(?P<calls>.*)</tool_call>", re.DOTALL)


class Layout(StrEnum):
    CHAT = "chat rows (messages)"
    SWE_AGENT = "SWE-agent rows (trajectory)"
    SHAREGPT = "sharegpt rows (conversations)"
    INSPECT = "Inspect log"
    SPANS = "OpenTelemetry spans"
    LANGFUSE = "Langfuse observations"


COLUMNS = {"trajectory": Layout.SWE_AGENT, "messages": Layout.CHAT, "conversations": Layout.SHAREGPT}


@dataclass(frozen=True, slots=True)
class Conversation:
    """`start` is the number of messages in earlier conversations of the same row. `spoken` are the indexes of the turns
    if the source says which messages these are."""

    layout: Layout
    messages: list[Message]
    instance_id: str
    repo: str
    tools: list[object]
    start: int = 0
    spoken: list[int] | None = None

    def turns(self) -> list[int]:
        """Return the indexes of assistant messages after the first message of a user or tool."""
        if self.spoken is not None:
            return self.spoken
        found, started = [], False
        for index, message in enumerate(self.messages):
            if started and message["role"] == "assistant":
                found.append(index)
            started = started or message["role"] in {"user", "tool"}
        return found


def read_conversation(row: Mapping[str, object]) -> Conversation:
    """Return the row's messages. Raises `RowRefused` with the column or message that is not valid."""
    column = next((name for name in COLUMNS if row.get(name) is not None), None)
    if column is None:
        named = ", ".join(list(row)[:12]) or "none"
        raise RowRefused(f"no messages: one of the columns {', '.join(COLUMNS)} is needed, the row has {named}")
    messages = read_messages(row[column], column)
    if not messages:
        raise RowRefused(f"column {column} is empty")
    instance_id = name_of(row, "instance_id")
    repo = name_of(row, "repo") or repo_of(instance_id)
    return Conversation(COLUMNS[column], messages, instance_id, repo, read_tools(row.get("tools")))


def read_messages(given: object, column: str) -> list[Message]:
    """Return a list of messages, which may be JSON text. Raises `RowRefused` with the message that is not valid."""
    return [read_message(entry, f"{column}.{index}") for index, entry in enumerate(_as_list(given, column))]


def read_tools(given: object) -> list[object]:
    """Return the functions of a row in OpenAI's form. Sources have a list or JSON text, of tools or bare functions."""
    if given is None or given == "" or given == []:
        return []
    tools = [_parsed(tool) for tool in _as_list(given, "tools")]
    if any(not isinstance(tool, dict) for tool in tools):
        raise RowRefused("column tools is not a list of objects")
    _refuse_unstorable(tools, "tools")
    return [tool if isinstance(tool, dict) and "function" in tool else _function(tool) for tool in tools]


def _function(tool: object) -> dict[str, object]:
    return {"type": "function", "function": tool}


def _refuse_unstorable(value: object, path: str) -> None:
    """Raise `RowRefused` for a value that no JSON column stores. Most are known by how they are written."""
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError:  # half a surrogate pair, a large number, deep nesting
        written = b"null"
    if b"\\u0000" not in written and b"null" not in written:  # a number that is not finite is written as null
        return
    try:
        refuse_unstorable(value, path=path)
    except Invalid as invalid:
        raise RowRefused("; ".join(f"{error.path} {error.message}" for error in invalid.errors)) from None


def repo_of(instance_id: str) -> str:
    """Return `owner/name` from an instance id, or an empty string."""
    found = BENCH_ID.fullmatch(instance_id) or SYNTHETIC_ID.fullmatch(instance_id)
    return f"{found['owner']}/{found['name']}" if found else ""


def name_of(row: Mapping[str, object], column: str) -> str:
    value = row.get(column)
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool) or len(str(value)) > 200:
        raise RowRefused(f"{column} is not a text of at most 200 characters")
    return storable_text(str(value), column)


def storable_text(text: str, path: str) -> str:
    """Return the text. Raises `RowRefused` for a NUL character or half a surrogate pair, which no database stores."""
    try:
        refuse_unstorable(text, path=path)
    except Invalid as invalid:
        raise RowRefused(f"{path} {invalid.errors[0].message}") from None
    return text


def _as_list(value: object, column: str) -> list[object]:
    """Return a list, which Parquet files often store as JSON text."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            raise RowRefused(f"column {column} is text that is not JSON") from None
    if not isinstance(value, list):
        raise RowRefused(f"column {column} is not a list of messages")
    return value


def decoded(value: object) -> object:
    """Return the list or object in JSON text, as Parquet files store it, and any other value as it is."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            found = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
        messages = found if isinstance(found, list) else [found]
        if messages and all(isinstance(one, dict) and {"role", "from", "messages"} & one.keys() for one in messages):
            return found
    return value


def _parsed(value: object) -> object:
    """Return the object in JSON text, and any other value as it is."""
    if isinstance(value, str):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def read_message(given: object, path: str) -> Message:
    """Return one message, which may be JSON text. Raises `RowRefused`."""
    entry = _parsed(given)
    if not isinstance(entry, dict):
        raise RowRefused(f"{path} is not an object")
    word = entry.get("role", entry.get("from"))
    role = ROLES.get(word) if isinstance(word, str) else None
    if role is None:
        raise RowRefused(f"{path} has the role {word!r}; known are {', '.join(ROLES)}"[:300])
    message: Message = {"role": role, "content": storable_text(_text(_content(entry, role), path), path)}
    if role == "assistant":
        calls = _tool_calls(entry, path)
        if not calls and word == "function_call":
            message["content"], calls = _sharegpt_calls(str(message["content"]))
        if calls:
            _refuse_unstorable(calls, f"{path}.tool_calls")
            message["tool_calls"] = calls
        reasoning = entry.get("reasoning_content") or entry.get("reasoning") or entry.get("thinking")
        if isinstance(reasoning, str):
            message["reasoning_content"] = storable_text(reasoning, f"{path}.reasoning_content")
    for key in ("tool_call_id", "name"):
        value = entry.get(key)
        if isinstance(value, str) and value:
            message[key] = storable_text(value, f"{path}.{key}")
    return message


def _content(entry: Mapping[str, object], role: str) -> object:
    """Return `content`, `text` or `value`. SWE-agent rows have the system's text in `system_prompt`, sometimes beside
    the text "None"."""
    values = (entry.get(key) for key in ("content", "text", "value"))
    value = next((value for value in values if value is not None), None)
    if role == "system" and value in (None, "", "None") and entry.get("system_prompt"):
        return entry["system_prompt"]
    return value


def _text(content: object, path: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part, f"{path}.{index}") for index, part in enumerate(content))
    raise RowRefused(f"{path} has a content that is neither text nor a list of parts")


def _part(part: object, path: str) -> str:
    """Return the part's text, or the type of a part that is no text, such as an image."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        text = part.get("text", part.get("content"))
        if isinstance(text, str):
            return text
        if isinstance(part.get("type"), str):
            return f"[{part['type']}]"
    raise RowRefused(f"{path} is not a part of a message")


def _tool_calls(entry: Mapping[str, object], path: str) -> list[object]:
    """Return OpenAI's `tool_calls`, or the older `function_call` in the same form."""
    calls = entry.get("tool_calls")
    if calls is None or calls == []:
        older = entry.get("function_call")
        calls = [{"type": "function", "function": older}] if isinstance(older, dict) else []
    elif isinstance(calls, str):
        calls = _as_list(calls, f"{path}.tool_calls")
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise RowRefused(f"{path}.tool_calls is not a list of objects")
    return calls


def _sharegpt_calls(value: str) -> tuple[str, list[object]]:
    """Return the content and the calls of sharegpt's `function_call` turn: JSON text, alone or after content between
    LLaMA-Factory's words. Other text is content."""
    found = CALL_AFTER_TEXT.fullmatch(value)
    calls = _parsed(found["calls"] if found else value)
    calls = calls if isinstance(calls, list) else [calls]
    if not calls or not all(isinstance(call, dict) and "name" in call for call in calls):
        return value, []
    return found["text"] if found else "", [{"type": "function", "function": call} for call in calls]
