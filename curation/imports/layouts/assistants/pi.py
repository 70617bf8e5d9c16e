"""Sessions of Pi: lines with an entry each, which name the entry before them, so that a session is a tree."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from curation.imports.layouts.account import IGNORED, DocumentReading, Fields
from curation.imports.layouts.assistants.chatgpt import branch_to
from curation.imports.layouts.messages.documents import one_session
from curation.imports.layouts.messages.metrics import model_of
from curation.imports.layouts.messages.read import read_messages
from curation.imports.layouts.session import Json, SessionOrigin, agent_of
from curation.imports.sources.rows import RowRefused

NAME = "Pi session"
_BRANCH = "ignored: it is on another branch than the last entry"
# What becomes of entries that are no messages.
_OTHERS = {
    **dict.fromkeys(("model_change", "thinking_level_change"), "ignored: the messages have it"),
    **dict.fromkeys(("label", "session_info", "custom"), "ignored: the model does not see it"),
    "compaction": "ignored: the messages before it are kept",
    "branch_summary": "steps",
    "custom_message": "steps",
    "message": "steps",
}
# An entry that has one of these says something to the model.
_SAID = frozenset(("message", "content", "text", "summary"))


def is_head(line: Mapping[str, Any]) -> bool:
    """Whether a file of lines that begins with this one is a session of Pi."""
    return line.get("type") == "session" and {"id", "cwd"} <= line.keys()


def read(lines: Sequence[Json]) -> DocumentReading:
    """Return the session of the branch that ends with the last entry. Raises `RowRefused`."""
    head, *entries = lines
    fields = Fields(head)
    known = {str(entry.get("id")): entry for entry in entries if "parentId" in entry}
    before = dict(zip([*known][1:], known, strict=False))
    names = branch_to(known, entries[-1].get("id") if entries else None, partial(_parent_of, known, before))
    shown = [known[name] for name in names] if known else entries
    if len(shown) < len(known):
        fields.became("(other branches)", _BRANCH)
    messages: list[Json] = []
    for entry in shown:
        kind = entry.get("type")
        if kind not in _OTHERS and not _SAID.isdisjoint(entry):
            raise RowRefused(f"an entry has the type {kind!r}, which is not known"[:300])
        becomes = _OTHERS.get(str(kind), IGNORED)
        fields.became(f"(entries: {kind})", becomes)
        if kind == "message":
            messages.append(_message(entry["message"], entry.get("timestamp"), fields))
        elif becomes == "steps":
            messages.append({"role": "user", "content": entry.get("summary", entry.get("content"))})
    found = read_messages(messages, "messages", fields)
    for name in ("type", "version"):
        fields.take(name, IGNORED)
    origin = SessionOrigin(id=str(fields.take("id", "id")))
    return one_session(NAME, agent_of("pi", model=model_of(found.steps)), found, fields, origin=origin)


def _parent_of(known: Mapping[str, Json], before: Mapping[str, str], entry: Json) -> object:
    """Return the entry before another one: the one in the file, where it names none that is known, such as a call."""
    parent = entry["parentId"]
    return parent if parent is None or parent in known else before.get(str(entry.get("id")))


def _message(given: Json, time: Any, fields: Fields) -> Json:
    """Return a message in a form that is read. A command that the person ran is a message of theirs."""
    if given.get("role") == "bashExecution":
        fields.became("messages[].command", "user message")
        return {"role": "user", "content": f"$ {given.get('command')}\n{given.get('output') or ''}"}
    usage = given.get("usage")
    cost = usage.get("cost") if isinstance(usage, dict) else None
    message = {"timestamp": time, **given}
    return message | ({"cost": cost.get("total")} if isinstance(cost, dict) else {})
