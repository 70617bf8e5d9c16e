"""A session as prompts are stored: its messages, and which of them are turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.imports.layouts.account import OF_RUNS, Account
from curation.imports.layouts.messages.read import listed
from curation.imports.layouts.messages.write import messages_of
from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.layouts.rows.read import has_conversation, read_row
from curation.imports.layouts.session import AgentSession, Json, Step
from curation.imports.sources.rows import RowRefused
from judging.messages import Message, content_of


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages in OpenAI's form. `turns` are the indexes of those that are prompts; `start` is the number of messages
    in earlier conversations of the same row. `trajectory` is the id of the one whose steps the messages are."""

    layout: str
    messages: Sequence[Message]
    turns: Sequence[int]
    tools: Sequence[Json] = ()
    instance_id: str = ""
    repo: str = ""
    start: int = 0
    trajectory: int | None = None


def read_conversation(row: Mapping[str, Any], mapping: RowMapping | None = None) -> tuple[Conversation, Account]:
    """Return the conversation of a row, with the answers of its agent as turns, and what became of its fields. Raises
    `RowRefused`."""
    if not has_conversation(row, mapping):
        raise RowRefused(_without_messages(row))
    session, account = read_row(row, mapping)
    return conversation_of(session), account.without(OF_RUNS)


def conversation_of(session: AgentSession) -> Conversation:
    """Return the conversation of a session, with the answers of its agent as turns."""
    # The chosen side of a pair is the end of its conversation. The sides of a duel are answers to it.
    chosen = next((ending.steps for ending in session.endings if ending.side == "chosen"), ())
    steps = [*session.steps, *chosen]
    asked = first_asked(steps)
    own = [position for position, step in enumerate(steps) if step["source"] == "agent" and position > asked]
    messages, turns = written(steps, own)
    origin = session.origin
    return Conversation(session.layout, messages, turns, session.tools, origin.instance_id, origin.repo)


def written(steps: Sequence[Step], positions: Sequence[int]) -> tuple[list[Message], list[int]]:
    """Return the messages of the steps, and the indexes of those of the steps at some positions."""
    messages: list[Message] = []
    starts = []
    for step in steps:
        starts.append(len(messages))
        messages += messages_of(step)
    return messages, [starts[position] for position in positions]


def length_of(message: Message) -> int:
    """Return the characters of a message's text."""
    content = message["content"]
    return len(content if isinstance(content, str) else content_of(message))


def first_asked(steps: Sequence[Step]) -> int:
    """Return the position of the first step that an agent can answer."""
    asked = (position for position, step in enumerate(steps) if step["source"] == "user" or "observation" in step)
    return next(asked, len(steps))


def _without_messages(row: Mapping[str, Any]) -> str:
    for name in ("trajectory", "messages", "conversations"):
        if row.get(name) is not None and not listed(row[name], name):
            return f"column {name} is empty"
    named = ", ".join(list(row)[:12]) or "none"
    return f"no messages: one of the columns trajectory, messages, conversations is needed, the row has {named}"
