"""Turn untrusted text into HTML: escape it, make control sequences visible, highlight commands, mark spans.

Every `SafeString` is built from escaped pieces.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from pygments.lexers.shell import BashLexer
from pygments.token import STANDARD_TYPES

from judging.answers.blocks import SHELL_LANGUAGES, fenced_blocks

# Terminal sequences (CSI, OSC), other C0 and C1 controls, and characters that reorder or hide text.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    "|[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
# Highlighting is linear but slow; a longer script is shown plain.
HIGHLIGHT_UP_TO = 20_000
_BASH = BashLexer()

_WRAPPED = {
    "text": '<div class="text">{}</div>',
    "command": '<pre class="code code--command"><code>{}</code></pre>',
    "code": '<pre class="code"><code>{}</code></pre>',
}

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an answer; `kind` is text, command (a shell block) or code (any other block)."""

    kind: str
    html: SafeString


def visible(text: str) -> SafeString:
    """Escape text and replace control characters by visible signs; line ends become `\\n`."""
    text = text.replace("\r\n", "\n")
    parts: list[SafeString] = []
    position = 0
    for match in _CONTROL.finditer(text):
        parts.append(conditional_escape(text[position : match.start()]))
        parts.append(format_html('<span class="control">{}</span>', "".join(map(_sign, match.group()))))
        position = match.end()
    parts.append(conditional_escape(text[position:]))
    return joined(parts)


def with_signs(text: str) -> str:
    """Like `visible`, for titles and attributes, which take no markup. Templates escape the result."""
    return _CONTROL.sub(lambda found: "".join(map(_sign, found.group())), text)


def without_colours(text: str) -> str:
    """Remove colours from terminal output; other sequences stay and become visible."""
    return _COLOUR.sub("", text)


def _sign(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return character if 0x20 < code < 0x7F or character == " " else f"⟨U+{code:04X}⟩"


def answer_segments(text: str, spans: Sequence[Span] = ()) -> list[Segment]:
    """Split an answer into text and blocks, without the fences, and mark `spans` (characters of `text`) as leaks."""
    segments: list[Segment] = []
    position = 0
    for language, block in fenced_blocks(text):
        fence = text.rfind("\n", 0, max(block.start - 1, 0)) + 1
        _add_text(segments, text, position, fence, spans)
        shell = language in SHELL_LANGUAGES
        html = (
            code_html(block.script, _shifted(spans, block.start))
            if shell
            else marked(block.script, _shifted(spans, block.start))
        )
        segments.append(Segment("command" if shell else "code", html))
        line_end = text.find("\n", block.end)
        position = len(text) if line_end < 0 else line_end + 1
    _add_text(segments, text, position, len(text), spans)
    return segments


def render_text(text: str, spans: Sequence[Span] = ()) -> SafeString:
    """Render a model's answer: prose as it is, fenced blocks as code, shell highlighted, leak spans marked."""
    return joined(format_html(_WRAPPED[part.kind], part.html) for part in answer_segments(text, spans))


def render_output(text: str) -> SafeString:
    """Render terminal output in a box."""
    return format_html('<pre class="terminal">{}</pre>', visible(without_colours(text)))


def marked(text: str, spans: Sequence[Span], name: str = "leak") -> SafeString:
    """Visible text with the spans in `<mark>`."""
    return joined(_wrapped(piece, inside, name) for piece, inside in _cut(text, 0, spans))


def code_html(script: str, spans: Sequence[Span] = ()) -> SafeString:
    """A shell script with Pygments' class names, and the spans marked."""
    script = script.rstrip("\n")
    if len(script) > HIGHLIGHT_UP_TO:
        return marked(script, spans)
    parts: list[SafeString] = []
    for offset, kind, value in _BASH.get_tokens_unprocessed(script):
        name = STANDARD_TYPES.get(kind, "")
        for piece, inside in _cut(value, offset, spans):
            html = _wrapped(piece, inside, "leak")
            parts.append(format_html('<span class="{}">{}</span>', name, html) if name else html)
    return joined(parts)


def found_spans(text: str, wanted: str) -> list[Span]:
    """Find `wanted`, ignoring case."""
    return [match.span() for match in re.finditer(re.escape(wanted), text, re.IGNORECASE)] if wanted else []


def _add_text(segments: list[Segment], text: str, start: int, end: int, spans: Sequence[Span]) -> None:
    inner = text[start:end]
    if inner.strip():
        start += len(inner) - len(inner.lstrip("\n"))
        segments.append(Segment("text", marked(inner.strip("\n"), _shifted(spans, start))))


def _shifted(spans: Sequence[Span], by: int) -> list[Span]:
    return [(start - by, end - by) for start, end in spans if end > by]


def _cut(text: str, offset: int, spans: Sequence[Span]) -> Iterator[tuple[str, bool]]:
    """Cut `text`, which begins at `offset`, where spans begin and end."""
    position, end = offset, offset + len(text)
    for span_start, span_end in spans:
        start, stop = max(span_start, position), min(span_end, end)
        if start >= stop:
            continue
        if start > position:
            yield text[position - offset : start - offset], False
        yield text[start - offset : stop - offset], True
        position = stop
    if position < end:
        yield text[position - offset :], False


def _wrapped(piece: str, inside: bool, name: str) -> SafeString:
    return format_html('<mark class="{}">{}</mark>', name, visible(piece)) if inside else visible(piece)


def joined(parts: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))
