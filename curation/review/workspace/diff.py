"""Differences between two answers: word by word for the page, line by line for people and scripts."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString

from curation.web.text.markup import joined, visible

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
# Comparing words costs more than linear time; above this the pieces are whole lines.
MAX_WORDS = 4_000


@dataclass(frozen=True, slots=True)
class DiffPiece:
    """A stretch of text; `kind` is "" if both texts have it, `del` if only the first has it, `add` for the second."""

    kind: str
    text: str


def word_diff(before: str, after: str) -> list[DiffPiece]:
    """The second text as changes to the first. Texts of more than `MAX_WORDS` words are compared by lines."""
    a, b = _WORDS.findall(before), _WORDS.findall(after)
    if len(a) > MAX_WORDS or len(b) > MAX_WORDS:
        a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    pieces: list[DiffPiece] = []
    for tag, a_start, a_end, b_start, b_end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            pieces.append(DiffPiece("", "".join(a[a_start:a_end])))
            continue
        if a_end > a_start:
            pieces.append(DiffPiece("del", "".join(a[a_start:a_end])))
        if b_end > b_start:
            pieces.append(DiffPiece("add", "".join(b[b_start:b_end])))
    return pieces


def unified_diff(before: str, after: str) -> str:
    """The lines of a unified diff without file names, three lines around each change."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    return "\n".join(line for line in lines if not line.startswith(("--- ", "+++ ")))


def diff_html(pieces: Iterable[DiffPiece], *, show: str) -> SafeString:
    """One side of a word diff: the common pieces, and those of kind `show` (`del` or `add`), or `both`."""
    parts: list[SafeString] = []
    for piece in pieces:
        html = visible(piece.text)
        if not piece.kind:
            parts.append(html)
        elif show in (piece.kind, "both"):
            parts.append(format_html("<ins>{}</ins>" if piece.kind == "add" else "<del>{}</del>", html))
    return joined(parts)
