"""A chat history and its answers as a page shows them, built on `curation.web.text.markup`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString

from curation.web.text.markup import Span, answer_segments, joined, visible, without_colours

FOLDED_OVER = 3000
LINE = 160
_WRAPPED = {
    "text": '<div class="text">{}</div>',
    "command": '<pre class="code code--command"><code>{}</code></pre>',
    "code": '<pre class="code"><code>{}</code></pre>',
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a history, ready for the page. `size` is in characters; `long` turns start folded."""

    index: int
    role: str
    line: SafeString
    size: int
    long: bool
    html: SafeString


def render_text(text: str, spans: Sequence[Span] = ()) -> SafeString:
    """A model's answer: prose as it stands, fenced blocks as code, shell highlighted, leak spans marked."""
    return joined(format_html(_WRAPPED[part.kind], part.html) for part in answer_segments(text, spans))


def render_output(text: str) -> SafeString:
    """What a terminal printed. Colours are dropped, every other control sequence is made visible."""
    return format_html('<pre class="terminal">{}</pre>', visible(without_colours(text)))


def turns_of(history: Sequence[Mapping[str, object]], *, start: int = 0) -> list[Turn]:
    """The messages as turns, numbered from `start`; tool calls are shown as JSON below their text."""
    return [_turn(index, message) for index, message in enumerate(history, start)]


def _turn(index: int, message: Mapping[str, object]) -> Turn:
    text = str(message.get("content") or "")
    role = str(message.get("role") or "user")
    if calls := message.get("tool_calls"):
        text += f"\n{json.dumps(calls, indent=1, ensure_ascii=False)}"
    html = render_text(text) if role == "assistant" else render_output(text)
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return Turn(index, role, visible(without_colours(line)[:LINE]), len(text), len(text) > FOLDED_OVER, html)
