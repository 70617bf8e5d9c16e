"""Turn untrusted text into HTML: escape it, make control sequences visible, highlight commands, mark spans, render
Markdown; and decide how a part of a transcript is shown: a command, a diff, JSON, Markdown, or the text of a terminal.

Every `SafeString` is built from escaped pieces, or is Markdown whose HTML was cleaned.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import count
from typing import Literal, NamedTuple

import nh3
from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from pygments.lexer import Lexer
from pygments.lexers.data import JsonLexer
from pygments.lexers.shell import BashLexer
from pygments.token import STANDARD_TYPES

from judging.messages import SHELL_LANGUAGES, fenced_blocks
from judging.scan.scan import scan_each, texts_of

# Terminal sequences (CSI, OSC), other C0 and C1 controls, and characters that reorder or hide text.
register = template.Library()
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    "|[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
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


@register.filter("signs")
def with_signs(text: str) -> str:
    """Like `visible`, for titles and attributes, which take no markup. Templates escape the result, and have it as the
    filter `signs` for names of files, models and people."""
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


# `blocks` is prose with fenced code, `screen` a terminal without a box around it.
Form = Literal["blocks", "text", "terminal", "screen", "command", "diff", "json", "markdown", "image"]
# Forms that are rendered whole or not at all: a part of one is plain text.
WHOLE: Mapping[Form, Form] = {"blocks": "text", "markdown": "terminal", "json": "terminal"}
# Characters; a longer text is not read as JSON.
JSON_UP_TO = 200_000
# Characters at either end of an output in which signs of its form or of a failure are looked for.
LOOKED_AT = 20_000
# Lines that a diff shows around a change.
CONTEXT = 3

_DIFF = re.compile(r"^(?:diff --git |\*\*\* (?:Begin Patch|Update File: )|--- .*\n\+\+\+ .*\n@@ )", re.MULTILINE)
_HEADING = re.compile(r"\s*#{1,3} \S")
_MARKDOWN = re.compile(r"^(?:```|#{2,4} \S|\|.*\|$)|\[[^\]\n]+\]\(|\*\*\S", re.MULTILINE)
_MARKDOWN_ANSWER = re.compile(
    r"^(?:#{1,6} \S|[-*+] \S|\d+[.)] \S|>\s|\|.*\|$|```)|\[[^\]\n]+\]\(\S|\*\*\S|`[^`\n]+`", re.MULTILINE
)
_JSON = JsonLexer()
_COMMAND = frozenset(("command", "cmd", "keystrokes", "bash_command", "commands"))
_CODE = frozenset(("code", "script"))
_SHELL = re.compile(r"bash|shell|terminal|exec|command|run|python|code", re.IGNORECASE)
_OLD = ("old_str", "old_string", "old_text", "old", "search")
_NEW = ("new_str", "new_string", "new_text", "new", "replace")
_PATHS = ("path", "file_path", "filename", "file", "notebook_path")
# Sets tell fast that most calls have neither a path nor an edit.
_OF_EDITORS, _OF_EDITS = frozenset(_PATHS), frozenset(("edits", *_OLD))
_WRITTEN = ("file_text", "content", "contents", "new_source")
_TEST = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|ctest|rspec|phpunit)\b"
    r"|\b(?:npm|yarn|pnpm|cargo|go|make|mvn|gradle|gradlew|dotnet|bazel|bin)[ /](?:run |-\S+ )*test"
)
_EDIT = re.compile(
    r"\bsed (?:-\S+ )*-i|\b(?:apply_patch|patch -p|git apply|tee )|\bcat\b[^|\n]*>|>>? ?[\w./~-]+\.\w+|<<-? ?['\"]?EOF"
)


class Argument(NamedTuple):
    """One field of a tool call. The value of a diff is old and new texts, other values are JSON."""

    name: str
    form: Form
    value: object

    @property
    def text(self) -> str:
        if self.form == "diff" and isinstance(self.value, list):
            return "\n@@\n".join(line_diff(*edit) for edit in self.value)
        return self.value if isinstance(self.value, str) else as_json(self.value)


def as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def form_of(text: str, plain: Form = "terminal") -> Form:
    """Return the form of a tool's output or of a message; `plain` if it is nothing special."""
    head = text[:LOOKED_AT]
    if _DIFF.search(head):
        return "diff"
    if is_json(text):
        return "json"
    if (heading := _HEADING.match(head)) and _MARKDOWN.search(head, heading.end()):
        return "markdown"
    return plain


def answer_form(text: str) -> Form:
    """Return the form of an assistant's answer: a diff, JSON, Markdown, or prose with fenced code."""
    form = form_of(text, "blocks")
    return "markdown" if form == "blocks" and _MARKDOWN_ANSWER.search(text[:LOOKED_AT]) else form


def is_json(text: str) -> bool:
    """Whether a text is an object or a list as JSON."""
    bare = text.strip() if len(text) <= JSON_UP_TO else ""
    if not bare or (bare[0], bare[-1]) not in (("{", "}"), ("[", "]")):
        return False
    try:
        json.loads(bare)
    except (ValueError, RecursionError):  # the latter: nested beyond the interpreter's depth
        return False
    return True


def arguments_of(function: str, arguments: Mapping[str, object]) -> Iterator[Argument]:
    """Yield the arguments of a call as fields: a command as such, old and new text of an edit as one diff."""
    rest = dict(arguments)
    command = command_of(function, arguments)
    if command is not None:
        name = next(name for name in arguments if name in _COMMAND | _CODE)
        rest.pop(name)
        yield Argument(name, "command", command)
        if not rest:
            return
    yield from (Argument(name, "text", rest.pop(name)) for name in _PATHS if name in rest)
    edits = _edits(rest)
    for name, value in rest.items():
        if not isinstance(value, str):
            is_plain = not isinstance(value, Mapping | list)
            yield Argument(name, "text" if is_plain else "json", value)
        else:
            yield Argument(name, "diff" if _DIFF.search(value[:LOOKED_AT]) else "text", value)
    if edits:
        yield Argument("edit", "diff", edits)


def command_of(function: str, arguments: Mapping[str, object]) -> str | None:
    """Return the command that a call runs in a shell or an interpreter, None if it runs none."""
    if not _OF_EDITORS.isdisjoint(arguments):  # the command of an editor, such as `view`
        return None
    for name, value in arguments.items():
        if name in _COMMAND or (name in _CODE and _SHELL.search(function)):
            if isinstance(value, str):
                return value
            if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
                return str(value[-1]) if value[1:2] in (["-c"], ["-lc"]) else shlex.join(value)
    return None


def is_edit(function: str, arguments: Mapping[str, object]) -> bool:
    """Whether a call changes a file."""
    command = command_of(function, arguments)
    if command is not None:
        return bool(_EDIT.search(command[:LOOKED_AT]))
    names = set(arguments)
    has_path = not names.isdisjoint(_PATHS)
    return bool(_edits(dict(arguments))) or (has_path and not names.isdisjoint(_WRITTEN)) or "patch" in function


def is_test(command: str) -> bool:
    return _TEST.search(command[:LOOKED_AT]) is not None


def _edits(rest: dict[str, object]) -> list[tuple[str, str]]:
    """Take the old and the new text out of the arguments of an edit, or of a list of edits."""
    if _OF_EDITS.isdisjoint(rest):
        return []
    for name, value in rest.items():
        if name == "edits" and isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
            found = [edit for one in value if len(edit := _edits(dict(one))) == 1]
            if value and len(found) == len(value):
                del rest[name]
                return [edit[0] for edit in found]
    old = next((name for name in _OLD if isinstance(rest.get(name), str)), None)
    new = next((name for name in _NEW if isinstance(rest.get(name), str)), None)
    if old is None or new is None:
        return []
    return [(str(rest.pop(old)), str(rest.pop(new)))]


def line_diff(before: str, after: str) -> str:
    """Return the lines that differ, with up to `CONTEXT` equal ones around them: one hunk without a head."""
    old, new = before.splitlines(), after.splitlines()
    most = min(len(old), len(new))
    start = next((at for at in range(most) if old[at] != new[at]), most)
    most -= start
    end = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    lines = [f" {line}" for line in old[max(start - CONTEXT, 0) : start]]
    lines += [f"-{line}" for line in old[start : len(old) - end]]
    lines += [f"+{line}" for line in new[start : len(new) - end]]
    lines += [f" {line}" for line in old[len(old) - end :][:CONTEXT]]
    return "\n".join(lines)


def part_html(form: Form, text: str, spans: Spans = (), found: str = "") -> SafeString:
    """Render a text, or a part of it, in its form. With `found` the spans are matches of a search and get this class,
    else they are leaks or other marks."""
    if form == "diff":
        return joined(_diff_lines(text, spans, found or "leak"))
    if found:
        return marked(text, spans, found)
    if form == "blocks":
        return render_text(text, spans)
    if form == "markdown":
        return markdown_html(with_signs(text))
    if form == "command":
        return code_html(text, spans)
    return highlighted(text, _JSON, spans) if form == "json" else marked(text, spans)


_HEAD = ("+++ ", "--- ", "*** ", "@@", "diff --git ", "index ")
_SIGNS = {"+": ("add", 1), "-": ("del", 1), " ": ("same", 1)}


def _diff_lines(text: str, spans: Spans, found: str) -> Iterator[SafeString]:
    """Yield the lines of a diff without their signs, which the page draws."""
    start = 0
    for line in text.splitlines(keepends=True):
        kind, signs = ("hunk", 0) if line.startswith(_HEAD) else _SIGNS.get(line[0], ("same", 0))
        end = start + len(line)
        inside = [span for span in spans if span[0] < end and span[1] > start + signs]
        html = marked(line[signs:].rstrip("\r\n"), shifted(inside, start + signs), found)
        yield format_html('<span class="diff__line diff__line--{}">{}</span>', kind, html)
        start = end
