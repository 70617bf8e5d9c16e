"""Facts about an answer that are computed, not judged: fenced blocks, thought, commands, action style, and how it is
dressed, which is a cause of a preference and never a reason.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from judging.answers.action_style import action_style
from judging.messages import Message, ToolCall, content_of, split_calls
from judging.shell.script import split_commands

SHELL_LANGUAGES = frozenset({"bash", "sh", "shell", "zsh", "console", "terminal", ""})

_FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)[^`\n]*$")
_HEREDOC = re.compile(r"(?<![<\w])<<(?P<dash>-?)\s*(?P<quote>['\"\\]?)(?P<word>[A-Za-z_]\w*)(?:['\"])?")
# Words in the names of tools that run a command, and the arguments that have it.
_SHELL_TOOL = re.compile(
    r"(?:^|[^a-z])(?:bash|sh|shell|terminal|command|cmd|exec|execute|run)(?:[^a-z]|$)", re.IGNORECASE
)
_COMMAND_ARGUMENTS = ("command", "cmd", "script")
_LABEL = re.compile(r"\b(?:THOUGHTS?|DISCUSSION|REASONING)\b[\s:*_#-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShellBlock:
    script: str
    start: int
    end: int


def bash_blocks(text: str) -> tuple[ShellBlock, ...]:
    """Return the shell blocks (`bash`, `sh`, `shell` … or a bare fence) in order.

    A fence inside a heredoc's body is text, so an answer that writes a Markdown file is still one block. A block that
    is never closed runs to the end.
    """
    return tuple(block for language, block in fenced_blocks(text) if language in SHELL_LANGUAGES)


def fenced_blocks(text: str) -> list[tuple[str, ShellBlock]]:
    """Return every fenced block with the language in its opening fence, lower case, empty for a bare one."""
    found: list[tuple[str, ShellBlock]] = []
    opened: tuple[str, str, int] | None = None
    heredoc_ends: list[tuple[str, bool]] = []
    waiting = _lines_by_word(text)
    position = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if opened is None:
            fence = _FENCE.match(bare)
            if fence is not None:
                opened = fence["marks"], fence["language"].lower(), position + len(line)
        elif heredoc_ends:
            word, dashed = heredoc_ends[0]
            if (bare.lstrip("\t") if dashed else bare) == word:
                heredoc_ends.pop(0)
        elif _closes(bare, opened[0]):
            marks, language, start = opened
            found.append((language, ShellBlock(text[start:position], start, position)))
            opened = None
        else:
            heredoc_ends = _heredocs(bare, waiting, position)
        position += len(line)
    if opened is not None:
        found.append((opened[1], ShellBlock(text[opened[2] :], opened[2], len(text))))
    return found


def _closes(line: str, marks: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(marks) and stripped == marks[0] * len(stripped)


def _lines_by_word(text: str) -> dict[str, int]:
    """The last position of every line that is one word: a heredoc counts only if its end exists."""
    position = 0
    last: dict[str, int] = {}
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if stripped and len(stripped) <= 60:
            last[stripped] = position
        position += len(line)
    return last


def _heredocs(line: str, waiting: dict[str, int], position: int) -> list[tuple[str, bool]]:
    if "<<" not in line:
        return []
    return [
        (match["word"], bool(match["dash"]))
        for match in _HEREDOC.finditer(line)
        if waiting.get(match["word"], -1) > position
    ]


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """`blocks` counts the shell blocks, `commands` the commands in all of them and in the tool calls at the end;
    `action_style` is of the first one. A call of another tool than a shell is a command of the tool's name.

    `has_thought`: there is reasoning in words before the first block or call (anywhere if there is neither), with or
    without the label THOUGHT; the label alone is no thought.
    """

    has_thought: bool
    blocks: int
    commands: int
    action_style: str


def answer_facts(text: str) -> AnswerFacts:
    """Compute the facts of one answer without its thinking."""
    said, calls = split_calls(text)
    blocks = bash_blocks(said)
    scripts = [block.script for block in blocks] + [_script_of(call) for call in calls]
    commands = [split_commands(script) for script in scripts]
    style = action_style(commands[0]) if commands else "other"
    return AnswerFacts(_has_thought(said), len(blocks), sum(len(found) for found in commands), style)


def acts(messages: Iterable[Mapping[str, object] | Message]) -> bool:
    """Whether the messages are of an agent: one calls a tool, is the result of a call, or has a shell block of the
    assistant."""
    return any(
        bool(message.get("tool_calls"))
        or message.get("role") in ("tool", "function")
        or (message.get("role") == "assistant" and bool(bash_blocks(content_of(message))))
        for message in messages
    )


def _script_of(call: ToolCall) -> str:
    """Return the shell script of a call; for another tool its name, as if it were a program."""
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    if _SHELL_TOOL.search(name):
        for argument in _COMMAND_ARGUMENTS:
            if isinstance(script := arguments.get(argument), str):
                return script
    return name


def _has_thought(text: str) -> bool:
    before = re.split(r"(?m)^[ \t]*(?:`{3,}|~{3,})", text, maxsplit=1)[0]
    return len(re.findall(r"[^\W\d_]{2,}", _LABEL.sub(" ", before))) >= 2


_BLOCK = re.compile(r"^```.*?^```[^\n]*$", re.DOTALL | re.MULTILINE)
_MARKDOWN = re.compile(r"^#{1,6} |^[^\S\n]*(?:[-*+]|\d+\.) |\*\*[^*\n]+\*\*|^\|.*\|$|^> |`[^`\n]+`", re.MULTILINE)
_COURTESY = re.compile(
    r"\b(?:please|thanks?|thank you|sorry|apolog\w+|happy to|glad to|great (?:question|idea|work)|kindly|appreciate\w*|"
    r"you'?re welcome|feel free|hope (?:this|that) helps)\b",
    re.IGNORECASE,
)


class Style(NamedTuple):
    """The number of Markdown marks outside of code blocks, and of courtesies."""

    markdown: int
    courtesy: int


def style_of(text: str) -> Style:
    prose = _BLOCK.sub("", text)
    return Style(len(_MARKDOWN.findall(prose)), len(_COURTESY.findall(prose)))
