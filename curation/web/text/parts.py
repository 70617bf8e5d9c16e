"""Decide how a part of a transcript is shown: a command, a diff, JSON, Markdown, or the text of a terminal."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString
from pygments.lexers.data import JsonLexer

from curation.web.text.markup import (
    Spans,
    code_html,
    highlighted,
    joined,
    markdown_html,
    marked,
    render_text,
    shifted,
    with_signs,
)

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
