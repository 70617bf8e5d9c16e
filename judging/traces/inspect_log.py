"""Samples of Inspect logs: `.eval`, a ZIP with a JSON file for each sample, or the same log as one JSON document.

The format is in `inspect_ai/log/_log.py`: long values are `attachment://` references into the sample's `attachments`.
"""

from collections.abc import Mapping, Sequence

from judging.traces.generation import (
    Found,
    Generation,
    Json,
    Message,
    Unreadable,
    calls_of,
    listed,
    refuse_deep,
    tools_of,
)

ATTACHMENT = "attachment://"
SAMPLE = frozenset(("id", "epoch", "input", "target", "messages"))


def is_log(row: Json) -> bool:
    """Whether the row is a sample of a log, or a whole log."""
    return row.keys() >= SAMPLE or (isinstance(row.get("eval"), Mapping) and "version" in row and "status" in row)


def read_log(row: Json) -> Found:
    """Return the samples' conversations, with every assistant message as a turn."""
    samples = [row] if row.keys() >= SAMPLE else listed(row.get("samples"))
    found: list[Generation] = []
    unreadable: list[str] = []
    for sample in samples:
        try:
            refuse_deep(sample)
        except Unreadable as refused:
            unreadable.append(str(refused))
        else:
            found += [_sample(sample)] if isinstance(sample, Mapping) else []
    return Found(found, unreadable=unreadable)


def _sample(row: Json) -> Generation:
    attachments = row.get("attachments")
    attached: Json = attachments if isinstance(attachments, Mapping) else {}
    messages = [_message(_resolved(entry, attached)) for entry in listed(row.get("messages"))]
    asked = next(
        (index for index, message in enumerate(messages) if message["role"] in ("user", "tool")), len(messages)
    )
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant" and index > asked]
    return Generation(messages, turns, tools_of(_resolved(_tools(row), attached)), str(row.get("id", "")))


def _tools(row: Json) -> object:
    """Return the tools of the last model call that had any: a sample has them only in its events."""
    events = [event for event in listed(row.get("events")) if isinstance(event, Mapping)]
    return next(
        (event["tools"] for event in reversed(events) if event.get("event") == "model" and event.get("tools")), []
    )


def _resolved(value: object, attached: Json) -> object:
    if isinstance(value, str):
        return attached.get(value.removeprefix(ATTACHMENT), value) if value.startswith(ATTACHMENT) else value
    if isinstance(value, Mapping):
        return {key: _resolved(inner, attached) for key, inner in value.items()}
    return [_resolved(inner, attached) for inner in value] if isinstance(value, list) else value


def _message(entry: object) -> Message:
    given: Json = entry if isinstance(entry, Mapping) else {}
    role = str(given.get("role", ""))
    content, thought = _content(given.get("content"))
    message: Message = {"role": role, "content": content}
    if thought:
        message["reasoning_content"] = thought
    if calls := calls_of(given.get("tool_calls")):
        message["tool_calls"] = calls
    if role == "tool":
        error = given.get("error")
        if isinstance(error, Mapping) and not content:
            message["content"] = str(error.get("message", ""))
        for key, name in (("tool_call_id", "tool_call_id"), ("function", "name")):
            if isinstance(given.get(key), str):
                message[name] = given[key]
    return message


def _content(given: object) -> tuple[str, str]:
    """Return the text and the reasoning of a message."""
    if isinstance(given, str) or given is None:
        return given or "", ""
    texts, thoughts = [], []
    parts: Sequence[object] = given if isinstance(given, list) else []
    for entry in parts:
        part: Json = entry if isinstance(entry, Mapping) else {"type": "text", "text": str(entry)}
        if part.get("type") == "reasoning":
            thoughts.append(str((part.get("summary") if part.get("redacted") else part.get("reasoning")) or ""))
        elif part.get("type") == "text":
            texts.append(str(part.get("text", "")))
        else:
            texts.append(f"[{part.get('type', 'part')}]")
    return "\n".join(texts), "\n".join(filter(None, thoughts))
