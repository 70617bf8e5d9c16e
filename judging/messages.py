"""Chat messages in the form of the OpenAI API: their texts, tool calls and fenced blocks."""

import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

CHARACTERS_PER_TOKEN = 4  # an estimate for English and code
TOKENIZER = f"estimate: characters ÷ {CHARACTERS_PER_TOKEN}, rounded up"
SHELL_LANGUAGES = frozenset({"bash", "sh", "shell", "zsh", "console", "terminal", ""})
_FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)[^`\n]*$")
_HEREDOC = re.compile(r"(?<![<\w])<<(?P<dash>-?)\s*(?P<quote>['\"\\]?)(?P<word>[A-Za-z_]\w*)(?:['\"])?")


class ToolFunction(TypedDict):
    name: str
    arguments: str


class ToolCall(TypedDict):
    id: NotRequired[str]
    type: NotRequired[str]
    function: ToolFunction


class Message(TypedDict):
    """One message of a history in OpenAI's form. `content` may be null with tool calls. A message with `train`
    is learned from as well as the turn that follows the history."""

    role: str
    content: str | None
    tool_calls: NotRequired[Sequence[ToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]
    reasoning_content: NotRequired[str]
    is_error: NotRequired[bool]
    train: NotRequired[bool]


_NOT_SENT = ("reasoning_content", "is_error", "train")


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


def estimated_tokens(characters: int) -> int:
    """Return tokens by the stated estimate. No tokenizer is loaded."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def message_text(message: Mapping[str, object] | Message) -> str:
    """Return a message's content, followed by its tool calls as judges and people see them, one on a line."""
    return "\n".join(filter(None, [content_of(message), calls_text(message.get("tool_calls"))]))


def calls_text(calls: object) -> str:
    """Return tool calls as lines `[tool call ID] name arguments`."""
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return ""
    return "\n".join(_render_call(call) for call in calls)


def without_calls(text: str, calls: Sequence[ToolCall]) -> str:
    """Return the content of a message from its text with calls, the reverse of `message_text`."""
    return text.removesuffix(calls_text(calls)).removesuffix("\n") if calls else text


def split_calls(text: str, names: Collection[str] | None = None) -> tuple[str, list[ToolCall]]:
    """Return the content and the calls of a text in the form of `message_text`, which a person may have written.

    Calls are the last lines that name a tool, one of `names` if they are given, with an object of arguments as JSON.
    Other lines are content.
    """
    lines = text.rstrip().split("\n")
    calls: list[ToolCall] = []
    while lines and (call := _parse_call(lines[-1], names)) is not None:
        calls.insert(0, call)
        lines.pop()
    return ("\n".join(lines), calls) if calls else (text, [])


def tool_names(tools: Iterable[Mapping[str, object]], calls: Iterable[Iterable[ToolCall]]) -> frozenset[str]:
    offered = (tool.get("function") for tool in tools)
    called = (call.get("function") for some in calls for call in some)
    functions = (function for function in (*offered, *called) if isinstance(function, Mapping))
    return frozenset(str(function.get("name", "")) for function in functions)


def add_call_ids(messages: Sequence[MutableMapping[str, Any]]) -> None:
    """Give an id to each call that has none. A tool's message without one answers the next open call."""
    number = 0
    waiting: deque[str] = deque()
    for message in messages:
        for call in message.get("tool_calls") or ():
            number += 1
            call["id"] = call.get("id") or f"call_{number}"
            waiting.append(call["id"])
        if message["role"] == "tool" and waiting:
            if not message.get("tool_call_id"):
                message["tool_call_id"] = waiting.popleft()
            elif message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])


def request_messages(messages: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return a history as model APIs take it: without reasoning and training marks, and calls with id, type and
    arguments as JSON text."""
    sent = [{key: value for key, value in message.items() if key not in _NOT_SENT} for message in messages]
    for message in sent:
        if isinstance(calls := message.get("tool_calls"), Sequence):
            message["tool_calls"] = [_sent_call(call) for call in calls]
    add_call_ids(sent)
    return sent


def _sent_call(call: Mapping[str, Any]) -> dict[str, object]:
    function = call.get("function") or {}
    arguments = function.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {**call, "type": "function", "function": {**function, "arguments": text}}


_CALL = re.compile(r"\[tool call(?: (?P<id>[^\]\n]+))?\] (?P<name>\S+) (?P<arguments>\{.*\})\s*")


def _parse_call(line: str, names: Collection[str] | None) -> ToolCall | None:
    found = _CALL.fullmatch(line)
    if found is None or (names is not None and found["name"] not in names):
        return None
    try:
        json.loads(found["arguments"])
    except (ValueError, RecursionError):  # the latter: nested beyond the interpreter's depth
        return None
    function: ToolFunction = {"name": found["name"], "arguments": found["arguments"]}
    return {"id": found["id"] or "", "type": "function", "function": function}


def _render_call(call: object) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return f"[tool call] {json.dumps(call, ensure_ascii=False, default=str)}"
    arguments = function.get("arguments", "")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    label = f"[tool call {call['id']}]" if isinstance(call, Mapping) and call.get("id") else "[tool call]"
    return f"{label} {function.get('name', '')} {shown}".rstrip()


@dataclass(frozen=True, slots=True)
class ShellBlock:
    script: str
    start: int
    end: int


def bash_blocks(text: str) -> tuple[ShellBlock, ...]:
    """Return the shell blocks (`bash`, `sh`, `shell` … or a bare fence) in order.

    A fence inside a heredoc's body is text, so an answer that writes a Markdown file is still one block. A block that
    is never closed runs to the end.
    """
    return tuple(block for language, block in fenced_blocks(text) if language in SHELL_LANGUAGES)


def fenced_blocks(text: str) -> list[tuple[str, ShellBlock]]:
    """Return every fenced block with the language in its opening fence, lower case, empty for a bare one."""
    found: list[tuple[str, ShellBlock]] = []
    opened: tuple[str, str, int] | None = None
    heredoc_ends: list[tuple[str, bool]] = []
    waiting = _lines_by_word(text)
    position = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if opened is None:
            fence = _FENCE.match(bare)
            if fence is not None:
                opened = fence["marks"], fence["language"].lower(), position + len(line)
        elif heredoc_ends:
            word, dashed = heredoc_ends[0]
            if (bare.lstrip("\t") if dashed else bare) == word:
                heredoc_ends.pop(0)
        elif _closes(bare, opened[0]):
            marks, language, start = opened
            found.append((language, ShellBlock(text[start:position], start, position)))
            opened = None
        else:
            heredoc_ends = _heredocs(bare, waiting, position)
        position += len(line)
    if opened is not None:
        found.append((opened[1], ShellBlock(text[opened[2] :], opened[2], len(text))))
    return found


def _closes(line: str, marks: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(marks) and stripped == marks[0] * len(stripped)


def _lines_by_word(text: str) -> dict[str, int]:
    """The last position of every line that is one word: a heredoc counts only if its end exists."""
    position = 0
    last: dict[str, int] = {}
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if stripped and len(stripped) <= 60:
            last[stripped] = position
        position += len(line)
    return last


def _heredocs(line: str, waiting: dict[str, int], position: int) -> list[tuple[str, bool]]:
    if "<<" not in line:
        return []
    return [
        (match["word"], bool(match["dash"]))
        for match in _HEREDOC.finditer(line)
        if waiting.get(match["word"], -1) > position
    ]
