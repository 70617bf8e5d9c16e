"""Turn untrusted text into HTML: escape it, make control sequences visible, highlight commands, mark spans, render
Markdown.

Every `SafeString` is built from escaped pieces, or is Markdown whose HTML was cleaned.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import count
from typing import NamedTuple

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from pygments.lexer import Lexer
from pygments.lexers.shell import BashLexer
from pygments.token import STANDARD_TYPES

from judging.answers.blocks import SHELL_LANGUAGES, fenced_blocks
from judging.scan.scan import scan_each, texts_of

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
    "text": '<div class="text" data-line="{}">{}</div>',
    "command": '<pre class="code code--command"><code data-line="{}">{}</code></pre>',
    "code": '<pre class="code"><code data-line="{}">{}</code></pre>',
}

Span = tuple[int, int]


class Mark(NamedTuple):
    """A span with the class of its `<mark>`, an id to jump to, and a title. A plain span is a leak."""

    start: int
    end: int
    name: str = "leak"
    anchor: str = ""
    title: str = ""


Spans = Sequence[Span | Mark]


@dataclass(frozen=True, slots=True)
class AnswerSegment:
    """A part of an answer; `kind` is text, command (a shell block) or code (any other block). `line` is the number of
    its first line."""

    kind: str
    html: SafeString
    line: int


def visible(text: str) -> SafeString:
    """Escape text and replace control characters by visible signs; line ends become `\\n`."""
    text = text.replace("\r\n", "\n")
    # Not Django's `escape`, which also takes texts that are translated later, in four times the time.
    parts: list[str] = []
    position = 0
    for match in _CONTROL.finditer(text):
        signs = escape("".join(map(_sign, match.group())))
        parts.append(f'{escape(text[position : match.start()])}<span class="control">{signs}</span>')
        position = match.end()
    parts.append(escape(text[position:]))
    return SafeString("".join(parts))


def with_signs(text: str) -> str:
    """Like `visible`, for titles and attributes, which take no markup. Templates escape the result."""
    return _CONTROL.sub(lambda found: "".join(map(_sign, found.group())), text)


def without_colours(text: str) -> str:
    """Remove colours from terminal output; other sequences stay and become visible."""
    return _COLOUR.sub("", text)


def place_without_colours(text: str, position: int) -> int:
    """Return where a character of `text` is in `without_colours(text)`; inside a colour it is the next character."""
    colours = (match.span() for match in _COLOUR.finditer(text))
    return position - sum(min(end, position) - start for start, end in colours if start < position)


def _sign(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return character if 0x20 < code < 0x7F or character == " " else f"⟨U+{code:04X}⟩"


def answer_segments(text: str, spans: Spans = ()) -> list[AnswerSegment]:
    """Split an answer into text and blocks, without the fences, and mark `spans` (characters of `text`) as leaks."""
    segments: list[AnswerSegment] = []
    position = 0
    for language, block in fenced_blocks(text):
        fence = text.rfind("\n", 0, max(block.start - 1, 0)) + 1
        _add_text(segments, text, position, fence, spans)
        shell = language in SHELL_LANGUAGES
        html = (
            code_html(block.script, shifted(spans, block.start))
            if shell
            else marked(block.script, shifted(spans, block.start))
        )
        line = text.count("\n", 0, block.start) + 1
        segments.append(AnswerSegment("command" if shell else "code", html, line))
        line_end = text.find("\n", block.end)
        position = len(text) if line_end < 0 else line_end + 1
    _add_text(segments, text, position, len(text), spans)
    return segments


def render_text(text: str, spans: Spans = ()) -> SafeString:
    """Render a model's answer: prose as it is, fenced blocks as code, shell highlighted, leak spans marked."""
    return joined(format_html(_WRAPPED[part.kind], part.line, part.html) for part in answer_segments(text, spans))


def render_output(text: str) -> SafeString:
    return format_html('<pre class="terminal">{}</pre>', visible(without_colours(text)))


def marked(text: str, spans: Spans, name: str = "leak") -> SafeString:
    """Visible text with the spans in `<mark>`, plain ones with the class `name`."""
    if not spans:
        return visible(text)
    marks = [Mark(*span) if len(span) > 2 else Mark(span[0], span[1], name) for span in spans]
    return joined(_wrapped(piece, mark) for piece, mark in _cut(text, 0, marks))


def code_html(script: str, spans: Spans = ()) -> SafeString:
    """A shell script with Pygments' class names, and the spans marked."""
    return highlighted(script.rstrip("\n"), _BASH, spans)


def highlighted(text: str, lexer: Lexer, spans: Spans = ()) -> SafeString:
    if len(text) > HIGHLIGHT_UP_TO:
        return marked(text, spans)
    parts: list[SafeString] = []
    for offset, kind, value in lexer.get_tokens_unprocessed(text):
        name = STANDARD_TYPES.get(kind, "")
        for piece, mark in _cut(value, offset, spans) if spans else ((value, None),):
            shown = _wrapped(piece, mark) if mark else visible(piece)
            parts.append(SafeString(f'<span class="{name}">{shown}</span>') if name else shown)
    return joined(parts)


def found_spans(text: str, wanted: str) -> list[Span]:
    return [match.span() for match in re.finditer(re.escape(wanted), text, re.IGNORECASE)] if wanted else []


def _add_text(segments: list[AnswerSegment], text: str, start: int, end: int, spans: Spans) -> None:
    inner = text[start:end]
    if inner.strip():
        start += len(inner) - len(inner.lstrip("\n"))
        line = text.count("\n", 0, start) + 1
        segments.append(AnswerSegment("text", marked(inner.strip("\n"), shifted(spans, start)), line))


def shifted(spans: Spans, by: int) -> list[Mark]:
    """Return the spans relative to the character `by`."""
    return [Mark(span[0] - by, span[1] - by, *span[2:]) for span in spans if span[1] > by]


def _cut(text: str, offset: int, spans: Spans) -> Iterator[tuple[str, Mark | None]]:
    """Cut `text`, which begins at `offset`, where spans begin and end. The first piece of a mark has its anchor."""
    position, end = offset, offset + len(text)
    for span in spans:
        mark = Mark(*span)
        start, stop = max(mark.start, position), min(mark.end, end)
        if start >= stop:
            continue
        if start > position:
            yield text[position - offset : start - offset], None
        yield text[start - offset : stop - offset], mark if start == mark.start else mark._replace(anchor="")
        position = stop
    if position < end:
        yield text[position - offset :], None


def _wrapped(piece: str, mark: Mark | None) -> SafeString:
    if mark is None:
        return visible(piece)
    anchor = format_html(' id="{}"', mark.anchor) if mark.anchor else ""
    title = format_html(' title="{}"', mark.title) if mark.title else ""
    return format_html('<mark class="{}"{}{}>{}</mark>', mark.name, anchor, title, visible(piece))


def joined(parts: Iterable[SafeString]) -> SafeString:
    return SafeString("".join(parts))


def scan_marks(recorded: object, shown: str, prefix: str) -> list[Mark]:
    """Return the marks of all findings in `recorded` that `shown` has, in characters of `shown`.

    `recorded` is a JSON value, such as a message with tool calls, and `shown` is its form on a page: its texts as they
    are, without colours, or as JSON. The finding number `n` of the value has the id `prefix-n`, so that a list of
    findings can link to its mark.
    """
    marks: list[Mark] = []
    numbers = count()
    searched: dict[str, int] = {}
    texts = list(texts_of(recorded))
    for text, findings in zip(texts, scan_each(texts), strict=True):
        if not findings:
            continue
        start, place = _find(shown, text[: findings[-1].end], searched.get(text, 0))
        searched[text] = start + 1
        for finding, number in zip(findings, numbers, strict=False):
            if start >= 0:
                low, high = start + place(finding.start), start + place(finding.end)
                if low == high:  # the page does not show it, such as a colour
                    continue
                marks.append(Mark(low, high, "scan", f"{prefix}-{number}", finding.rule))
    return sorted(marks)


def _find(shown: str, text: str, after: int) -> tuple[int, Callable[[int], int]]:
    """Return where the text begins in `shown`, -1 if it is not there, and where its characters are from there on."""
    forms: tuple[tuple[str, Callable[[int], int]], ...] = (
        (text, int),
        (without_colours(text), partial(place_without_colours, text)),
        (_in_json(text), lambda position: len(_in_json(text[:position]))),
    )
    for form, place in forms:
        start = shown.find(form, after)
        if start >= 0:
            return start, place
    return -1, int


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _lower_headings(state: StateCore) -> None:
    """Lower each heading by a level: the page itself has the only `h1`."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + 1)}"


_markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
_markdown.core.ruler.push("lower_headings", _lower_headings)
# No images: a page must not load from other hosts. No ids and classes: they could clash with the page's own.
TAGS = {
    *("a", "blockquote", "br", "code", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
ATTRIBUTES = {"a": {"href", "title"}}


def markdown_html(text: str) -> SafeString:
    """CommonMark with tables; raw HTML is shown as text, links are http, https or mailto and get `rel=noopener`."""
    html = nh3.clean(
        _markdown.render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)  # noqa: S308 - nh3 has removed everything that is not in the lists above
