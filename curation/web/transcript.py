"""What a machine said, as HTML: escaped, control sequences made visible, commands highlighted, spans marked.

Transcripts are hostile input. Nothing here trusts them: every character is escaped, and what a terminal or a browser
would act on is shown as a word instead. Offsets of spans are characters of the text that is given.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments.lexers import BashLexer
from pygments.token import STANDARD_TYPES

# ANSI sequences; other controls but tab and line feed; marks that turn the direction of text or hide in it.
_CONTROL = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b.?"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
FOLDED_OVER = 3000
MOST_HIGHLIGHTED = 20_000


@dataclass(frozen=True, slots=True)
class Mark:
    """A span of the text with the class of its `<mark>` and what hovering says."""

    start: int
    end: int
    tone: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a history, ready for the page. `size` is in characters; `long` turns start folded."""

    index: int
    role: str
    line: str
    size: int
    long: bool
    html: SafeString


def render_text(text: str, marks: Sequence[Mark] = ()) -> SafeString:
    """A model's answer: prose as it stands, fenced blocks as code, shell highlighted, marks through both."""
    parts: list[str] = []
    at = 0
    for fence in _FENCE.finditer(text):
        parts.append(_prose(text, at, fence.start(), marks))
        start, end = fence.span(3)
        shell = fence.group(2).lower() in {"", "bash", "sh", "shell", "console"}
        kind = "code code--command" if shell else "code"
        inner = _segments(text, start, end, _tokens(text[start:end]) if shell else (), marks)
        parts.append(f'<pre class="{kind}"><code>{inner}</code></pre>')
        at = fence.end()
    parts.append(_prose(text, at, len(text), marks))
    return mark_safe("".join(parts))  # noqa: S308 - every piece went through `escape`


def render_output(text: str) -> SafeString:
    """What a terminal printed. Colours are dropped, every other control sequence is made visible."""
    shown = _COLOUR.sub("", text)
    return mark_safe(f'<pre class="terminal">{_visible(shown)}</pre>')  # noqa: S308 - escaped by `_visible`


def turns_of(history: Sequence[Mapping[str, object]], *, start: int = 0) -> list[Turn]:
    """The messages as turns; tool calls are shown as what they are."""
    return [_turn(start + offset, message) for offset, message in enumerate(history)]


def _turn(index: int, message: Mapping[str, object]) -> Turn:
    text = str(message.get("content") or "")
    role = str(message.get("role") or "user")
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        text += "".join(f"\n```\n{_call_text(call)}\n```" for call in calls)
    html = render_text(text) if role == "assistant" else render_output(text)
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return Turn(index, role, _CONTROL.sub(" ", line)[:160], len(text), len(text) > FOLDED_OVER, html)


def _call_text(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    return f"{function.get('name')}({function.get('arguments')})" if isinstance(function, dict) else str(call)


def _prose(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    if not text[start:end].strip():
        return ""
    while text[start] == "\n":
        start += 1
    inner = _segments(text, start, start + len(text[start:end].rstrip()), (), marks)
    return f'<div class="text">{inner}</div>'


def _tokens(code: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, class) of the highlighted pieces of a command."""
    if len(code) > MOST_HIGHLIGHTED:
        return
    for index, token, value in BashLexer().get_tokens_unprocessed(code):
        if name := STANDARD_TYPES.get(token, ""):
            yield index, index + len(value), name


def _segments(text: str, start: int, end: int, tokens: Iterable[tuple[int, int, str]], marks: Sequence[Mark]) -> str:
    """The text from `start` to `end`, cut where a token or a mark begins or ends, each piece escaped on its own."""
    pieces = [(start + a, start + b, name) for a, b, name in tokens]
    inside = [mark for mark in marks if mark.end > start and mark.start < end]
    cuts = {start, end}
    cuts.update(cut for a, b, _ in pieces for cut in (a, b) if start <= cut <= end)
    cuts.update(min(max(cut, start), end) for mark in inside for cut in (mark.start, mark.end))
    ordered = sorted(cuts)
    out, at = [], 0
    for a, b in zip(ordered, ordered[1:], strict=False):
        while at < len(pieces) and pieces[at][1] <= a:
            at += 1
        html = _visible(text[a:b])
        if at < len(pieces) and pieces[at][0] <= a:
            html = f'<span class="{pieces[at][2]}">{html}</span>'
        found = next((mark for mark in inside if mark.start <= a and b <= mark.end), None)
        if found is not None:
            html = f'<mark class="{found.tone}" title="{escape(found.title)}">{html}</mark>'
        out.append(html)
    return "".join(out)


def _visible(text: str) -> str:
    """Escaped, each control sequence as a word that nothing acts on."""
    out: list[str] = []
    at = 0
    for control in _CONTROL.finditer(text):
        if control.group() == "\r":  # of CR LF line ends
            out.append(escape(text[at : control.start()]))
        else:
            word = control.group().encode("unicode_escape").decode()
            out.append(f'{escape(text[at : control.start()])}<span class="control">{escape(word)}</span>')
        at = control.end()
    out.append(escape(text[at:]))
    return "".join(out)
