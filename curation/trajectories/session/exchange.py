"""The raw exchange with the model, for audit: scaffold, prose and format errors included. Never exported."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.web.text.markup import visible, without_colours

MESSAGES = 40
FIRST, LINE = 4_000, 160


@dataclass(frozen=True, slots=True)
class Message:
    """One message as sent or received; of a long one only the beginning is drawn."""

    number: int
    role: str
    line: SafeString
    html: SafeString
    size: int
    left: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages from number `start` on; `next_start` None where they are the last."""

    messages: list[Message]
    total: int
    next_start: int | None


def exchange_of(kept: Sequence[object], *, start: int = 0) -> Exchange:
    start = max(start, 0)
    end = start + MESSAGES
    messages = [_message(number, entry) for number, entry in enumerate(kept[start:end], start)]
    return Exchange(messages, len(kept), end if end < len(kept) else None)


def exchange_text(kept: Sequence[object]) -> str:
    """All of it as a plain text file."""
    return "\n\n".join(f"=== {number} {role} ===\n{text}" for number, (role, text) in enumerate(map(_said, kept)))


def _message(number: int, entry: object) -> Message:
    role, text = _said(entry)
    line = visible(" ".join(text[: 2 * LINE].split())[:LINE])
    return Message(number, role, line, visible(without_colours(text[:FIRST])), len(text), max(len(text) - FIRST, 0))


def _said(entry: object) -> tuple[str, str]:
    """(role, text); what is more than a role and its text is shown as the JSON that it is."""
    if isinstance(entry, dict) and set(entry) == {"role", "content"} and isinstance(entry["content"], str):
        return str(entry["role"]), entry["content"]
    role = str(entry.get("role", "")) if isinstance(entry, dict) else ""
    return role or "record", json.dumps(entry, indent=1, ensure_ascii=False)
