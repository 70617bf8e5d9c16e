"""Conversations of logs and traces, beside those of rows: one document may have many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from curation.duels.imports.conversation import Conversation, conversation_of, read_conversation, written
from curation.imports.layouts.account import OF_RUNS, Account, DocumentReading, Fields
from curation.imports.layouts.agents import inspect_log
from curation.imports.layouts.clean import clean
from curation.imports.layouts.messages.calls import ATTACHED, read_tools
from curation.imports.layouts.messages.read import read_messages
from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused
from judging.traces.generation import FoundGenerations, Generation
from judging.traces.read import is_langfuse, is_trace, read_trace

LONGEST_GROUP = 200


class LogLayout(StrEnum):
    SPANS = "OpenTelemetry spans"
    LANGFUSE = "Langfuse observations"


@dataclass(frozen=True, slots=True)
class LogDocument:
    """`conversations` have ascending starts. A span that is no model call has none, and is no error; calls
    `without_content` were traced without their messages, and `unreadable` ones cannot be read."""

    layout: str
    conversations: list[Conversation]
    without_content: int = 0
    unreadable: int = 0
    account: Account = field(default_factory=Account)


def read_document(
    row: Mapping[str, object], mapping: RowMapping | None = None, tools: Sequence[Json] = ()
) -> LogDocument:
    """Return the conversations of one row; those without tools get the tools given. Raises `RowRefused`."""
    document = _read_document(row, mapping)
    without = [one for one in document.conversations if not one.tools]
    if not tools or not without:
        return document
    document.account.count(ATTACHED, "tools")
    found = [one if one.tools else replace(one, tools=list(tools)) for one in document.conversations]
    return replace(document, conversations=found)


def _read_document(row: Mapping[str, object], mapping: RowMapping | None) -> LogDocument:
    is_mapped = mapping is not None and mapping.reads_messages
    if inspect_log.fits(row) and not is_mapped:
        return _of_log(inspect_log.read(row))
    if is_trace(row) and not is_mapped:
        layout = LogLayout.LANGFUSE if is_langfuse(row) else LogLayout.SPANS
        return _document(layout, read_trace(row))
    conversation, account = read_conversation(row, mapping)
    if not conversation.turns:
        raise RowRefused("no assistant message with a history before it")
    return LogDocument(conversation.layout, [conversation], account=account)


def _of_log(reading: DocumentReading) -> LogDocument:
    conversations: list[Conversation] = []
    start = 0
    for session in reading.sessions:
        conversations.append(replace(conversation_of(session), start=start))
        start += len(conversations[-1].messages)
    account = reading.account.without(OF_RUNS)
    return LogDocument(inspect_log.NAME, conversations, unreadable=len(reading.unreadable), account=account)


def _document(layout: LogLayout, found: FoundGenerations) -> LogDocument:
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
    return LogDocument(layout, conversations, found.without_content, len(reasons))


def _conversation(layout: LogLayout, found: Generation) -> Conversation:
    cleaned, _ = clean({"messages": found.messages, "tools": found.tools, "group": found.group[:LONGEST_GROUP]}, "")
    read = read_messages(cleaned["messages"], "messages", Fields(cleaned))
    messages, turns = written(read.steps, [read.positions[turn] for turn in found.turns])
    return Conversation(layout, messages, turns, read_tools(cleaned["tools"], "tools"), cleaned["group"])
