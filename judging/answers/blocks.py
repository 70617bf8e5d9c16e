"""The fenced blocks of an answer that a shell would run."""

import re
from dataclasses import dataclass

SHELL_LANGUAGES = frozenset({"bash", "sh", "shell", "zsh", "console", "terminal", ""})

_FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)[^`\n]*$")
_HEREDOC = re.compile(r"(?<![<\w])<<(?P<dash>-?)\s*(?P<quote>['\"\\]?)(?P<word>[A-Za-z_]\w*)(?:['\"])?")


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
