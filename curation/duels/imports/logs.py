"""Conversations of logs and traces, beside those of rows: one document may have many."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from curation.duels.imports.conversation import Conversation, read_conversation, written
from curation.imports.layouts.account import Fields
from curation.imports.layouts.clean import clean
from curation.imports.layouts.mapping import RowMapping
from curation.imports.layouts.messages import read_messages
from curation.imports.layouts.tools import read_tools
from curation.imports.sources.rows import RowRefused
from judging.traces.generation import Found, Generation
from judging.traces.inspect_log import is_log, read_log
from judging.traces.read import is_langfuse, is_trace, read_trace

LONGEST_GROUP = 200


class Layout(StrEnum):
    INSPECT = "Inspect log"
    SPANS = "OpenTelemetry spans"
    LANGFUSE = "Langfuse observations"


@dataclass(frozen=True, slots=True)
class Document:
    """`conversations` have ascending starts. A span that is no model call has none, and is no error; calls
    `without_content` were traced without their messages, and `unreadable` ones cannot be read."""

    layout: str
    conversations: list[Conversation]
    without_content: int = 0
    unreadable: int = 0


def read_document(row: Mapping[str, object], mapping: RowMapping | None = None) -> Document:
    """Return the conversations of one row. Raises `RowRefused`."""
    if is_log(row):
        return _document(Layout.INSPECT, read_log(row), "the log has no samples")
    if is_trace(row):
        layout = Layout.LANGFUSE if is_langfuse(row) else Layout.SPANS
        return _document(layout, read_trace(row), "")
    conversation = read_conversation(row, mapping)
    if not conversation.turns:
        raise RowRefused("no assistant message with a history before it")
    return Document(conversation.layout, [conversation])


def _document(layout: Layout, found: Found, empty: str) -> Document:
    """Raises `RowRefused` where nothing of the document can be imported."""
    conversations: list[Conversation] = []
    reasons = list(found.unreadable)
    start = 0
    for generation in found.generations:
        try:
            conversation = _conversation(layout, generation)
        except RowRefused as refused:
            reasons.append(str(refused))
            continue
        conversations.append(replace(conversation, start=start))
        start += len(conversation.messages)
    if not conversations and reasons:
        raise RowRefused(reasons[0])
    if not conversations and found.without_content:
        raise RowRefused("the trace has no messages of its model calls: record their content (gen_ai.input.messages)")
    if not conversations and empty:
        raise RowRefused(empty)
    return Document(layout, conversations, found.without_content, len(reasons))


def _conversation(layout: Layout, found: Generation) -> Conversation:
    cleaned, _ = clean({"messages": found.messages, "tools": found.tools, "group": found.group[:LONGEST_GROUP]}, "")
    read = read_messages(cleaned["messages"], "messages", Fields(cleaned))
    messages, turns = written(read.steps, [read.positions[turn] for turn in found.turns])
    return Conversation(layout, messages, turns, read_tools(cleaned["tools"], "tools"), cleaned["group"])
