"""Formats that write what an agent says in one step as several items: OpenAI Responses, and Harmony by its channels."""

from collections.abc import Mapping
from typing import Any

from curation.imports.layouts.account import Fields
from curation.imports.layouts.messages.calls import make_call
from curation.imports.layouts.messages.content import Result, read_content, read_result, thought_of
from curation.imports.layouts.messages.steps import CALL, MESSAGE, REASONING, Steps
from curation.imports.layouts.messages.thinking import split_thinking
from curation.imports.sources.rows import RowRefused

Entry = Mapping[str, Any]
ITEMS = frozenset(
    ("reasoning", "function_call", "custom_tool_call", "local_shell_call")
    + ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
)
# Recipients that are no tools.
_EVERYBODY = frozenset(("all", "assistant", "user"))


def add_item(steps: Steps, item: Entry, path: str, fields: Fields, mark: bool | None) -> None:
    """Add an item of the Responses API whose type is one of `ITEMS`."""
    kind = item["type"]
    if kind == "reasoning":
        steps.add_part(REASONING, thought_of(item, path), mark=mark)
        return
    identifier = item.get("call_id") or item.get("id") or ""
    if kind.endswith("_output"):
        content = read_result(item.get("output") or "", f"{path}.output", fields)
        steps.add_result(Result(content, str(identifier)))
        return
    name, arguments = item.get("name"), item.get("arguments")
    if kind == "custom_tool_call":  # a tool that takes text, not an object
        arguments = {"input": item.get("input")}
    elif kind == "local_shell_call":
        name, arguments = "local_shell", item.get("action")
    if not isinstance(name, str) or not name:
        raise RowRefused(f"{path} is a tool call that names no function")
    steps.add_part(CALL, calls=[make_call(name, arguments, identifier, path, fields)], mark=mark)


def add_channel(steps: Steps, message: Entry, path: str, fields: Fields, mark: bool | None) -> None:
    """Add an assistant message of Harmony: reasoning in `analysis`, calls by their recipient, and text."""
    content = read_content(message.get("content"), path, fields).message()
    channel, recipient = message.get("channel"), message.get("recipient")
    if not isinstance(content, str):
        raise RowRefused(f"{path} has an image in a channel")
    if isinstance(recipient, str) and recipient and recipient not in _EVERYBODY:
        arguments = {"code": content} if recipient == "python" else content
        call = make_call(recipient.removeprefix("functions."), arguments, None, path, fields)
        steps.add_part(CALL, calls=[call], mark=mark)
    elif channel == "analysis":
        steps.add_part(REASONING, content, mark=mark)
    elif channel in ("commentary", "final", None):
        add_message(steps, content, mark)
    else:
        raise RowRefused(f"{path} has the channel {channel!r}; known are analysis, commentary, final"[:300])


def add_message(steps: Steps, text: str, mark: bool | None) -> None:
    """Add the message of an agent as an item that reasoning may precede and calls may follow."""
    text, thought = split_thinking(text)
    if thought:
        steps.add_part(REASONING, thought, mark=mark)
    steps.add_part(MESSAGE, text, mark=mark)
